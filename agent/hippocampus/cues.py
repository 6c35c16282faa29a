"""The words by which a sentence shows what it claims, in English and Arabic; how they are read: claims.py."""

from __future__ import annotations

from agent.hippocampus.patterns import Pattern

CUTS = Pattern(
    r"(?<!\b[Dd]r)(?<!\b[MS][rt])(?<!\bMrs)(?<!\bProf)[.;؛!?؟\n]+(?=\s|$)|\s[-–—]+\s|[,،:]\s+|\s+(?=(?:but"
    r"|and now|and instead|now|instead)\s)"
    r"|\s+(?=and (?:started|joined|moved|prefers?|likes?|loves?) )"
    r"|\s+(?=(?:وانضم|وانضمت|وانتقل|وانتقلت|وتفضل|ويفضل|ولكن|لكن|بل|والان|والآن|وصار|وصارت|واصبح|وأصبح|وأصبحت)\s)"
)
GONE = Pattern(
    r"\b(?:no longer|no more|not any ?more|any ?more|used to|stopped|quit|gave up|went off|switched from|done with"
    r"|has left|tired of|fed up|(?:i|we|he|she|they|am|is|are|was|went|gone|been) off(?! to)|got rid of"
    r"|dropped|ditched)\b"
    r"|(?<!\w)(?:(?:لم|لن|ما) (?:يعد|تعد|اعد|نعد|عاد|عادت|عدت|عدنا)|توقف\w* عن|اقلع\w* عن|بطل\w*|مل من|ملت من|ترك\w*"
    r"|كان\w* (?:\w+ )?(?=[يتان]\w*(?:حب|فضل)\w*))"
)
NOT = Pattern(
    r"\b(?:not(?! only)|doesnt|dont|didnt|isnt|arent|wasnt|wont|cant|never|neither|without|cannot|hardly|rarely)\b"
    r"|(?<!\w)(?:لا(?! بد)|لم|لن|ليس|ليست|لست|مو|مش|ما(?= (?:[يتانا]\w*(?:حب|فضل|عجب|ريد)\w*|هو|هي|عند))|غير"
    r"|بدون)(?!\w)"
)
LIKE = Pattern(
    r"\b(?:prefer\w*|like[sd]?|likes|liking|love[sd]?|loves|enjoy\w*|favou?rs?|favou?rites?|fan of|keen on|fond of"
    r"|would rather|chooses?|opts? for|switched|suits? (?:me|us|him|her|them)|(?:better|best) for (?:me|us|him|her)"
    r"|thinks? (?:that )?(?:highly|well) of)\b"
    r"|(?<!\w)[وف]?(?:[اينت]فضل\w*|فضل(?:ت|نا)?|مفضل\w*|المفضل\w*|[اينت]حب\w*|احب\w*|حب(?:يت|ها|ه)?"
    r"|[يت]عجب\w*|[اينت]ميل|[اينت]ختار"
    r"|[اينت]ستمتع|[اينت]هوي|صار(?:ت)? [يت]فضل\w*)(?!\w)"
)
STRONG = Pattern(
    r"\b(?:prefer\w*|favou?rites?|would rather|switched|chooses?|opts? for|always)\b"
    r"|(?<!\w)[وف]?(?:[اينت]فضل\w*|فضل(?:ت|نا)?|مفضل\w*|المفضل\w*|[اينت]ختار|[اينت]ميل)(?!\w)"
)
DISLIKE = Pattern(
    r"\b(?:hate[sd]?|hates|dislike[sd]?|dislikes|avoids?|avoided|detests?|loathes?|cant stand|cannot stand"
    r"|allergic to|sick of)\b"
    r"|(?<!\w)[وف]?(?:[اينت]كره\w*|كره\w*|[اينت]تجنب\w*|[اينت]بغض\w*|حساسيه)(?!\w)"
)
LIVE = Pattern(
    r"\b(?:live[sd]?|lives|living|reside[sd]?|resides|moved|moving|moves|relocated|settled|based)\b"
    r"|(?<!\w)[وف]?(?:[اينت]سكن\w*|ساكن\w*|سكن(?:ت)?|[اينت]عيش\w*|[اينت]قيم\w*|مقيم\w*|انتقل\w*|[اينت]نتقل\w*)(?!\w)"
)
WORK = Pattern(
    r"\b(?:work(?:s|ed|ing)? (?:at|for|as|in)|joined|employed|hired by|started (?:at|with)|new job|got a job)\b"
    r"|(?<!\w)[وف]?(?:[اينت]عمل (?:في|لدي|مع|عند|ك\w+)|[اينت]شتغل\w*|انضم\w*|توظف\w*)(?!\w)"
)
IS = Pattern(
    r"\b(?:(?:(?:is|was|has been|have been|had been|got) )?(?:moved|changed|set|raised|lowered|increased|reduced|cut"
    r"|pushed|postponed|shifted|brought forward|extended|renamed|updated) (?:back )?to"
    r"|is|are|was|were|became|becomes|will be)\b|(?<!\w)(?:هو|هي|اصبح\w*"
    r"|صار\w*|كان\w*|تغير\w* الي)(?!\w)"
)
REST = Pattern(
    r"\b(?:over|instead of|rather than|more than|than|as opposed to|and not|not)\b"
    r"|(?<!\w)(?:بدل|بدلا من|وليس|ليس|اكثر من|علي(?= ال))(?!\w)"
)
FROM_TO = Pattern(r"\bfrom (?P<old>.+?) (?:to|into) (?P<new>.+)|(?<!\w)من (?P<old_>.+?) الي (?P<new_>.+)")
REPLACED = Pattern(
    r"\b(?:replaced|swapped|traded|exchanged|substituted) (?P<old>.+?) (?:for|with|by) (?P<new>.+)"
    r"|\b(?:dropped|ditched|left|gave up|quit) (?P<old2>.+?) (?:for|in favou?r of) (?P<new2>.+)"
    r"|(?<!\w)(?:استبدل\w*|بدل(?:ت|نا)?|غير(?:ت|نا)?) (?P<old_>.+?) (?:ب(?=ال|\w)|الي )(?P<new_>.+)"
)
NOW = Pattern(
    r"\b(?:now|nowadays|these days|instead|as of|from now on|since then|currently)\b"
    r"|(?<!\w)(?:الان|حاليا|اصبح\w*|صار\w*|منذ الان|من الان|بدلا من ذلك)(?!\w)"
)
CHANGED = Pattern(
    r"\b(?:moved|changed|set|raised|lowered|increased|reduced|cut|pushed|postponed|shifted|brought forward|extended"
    r"|renamed|updated) (?:back )?to\b|\bbecame\b|(?<!\w)تغير\w* الي(?!\w)"
)
GERUND = Pattern(r"(?=\w{5,}$)[a-z]+ing")
CONTEXT = Pattern(
    r"\b(?:on|in|for|at|when|during|while|by|with|via|after|before|to)\b|(?<!\w)(?:في|علي|عند|عندما|خلال"
    r"|اثناء|مع|بعد|قبل|عبر)(?!\w)"
    r"|(?<!\w)(?=(?:لل|بال)\w)"
)
