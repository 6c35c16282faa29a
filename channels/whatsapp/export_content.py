"""What the text of an exported message says beside its words: files, placeholders for media, marks of edits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from channels.message import Attachment, Kind
from channels.whatsapp.export_lines import BLANKS, MARKS, trimmed

AttachmentKind = Literal["photo", "voice", "audio", "video", "file", "sticker"]

_M = f"[{MARKS}]{{0,4}}"
_B = f"[{BLANKS}]"
_ATTACHED = (
    "attached|Anhang|adjunto|pièce jointe|allegato|anexado|anexo|bijlage|bifogad|vedhæftet|załącznik|ek|прикреплено|"
    "приложено|المرفق|مرفق|添付ファイル|附件|첨부됨"
)
_FILE_ATTACHED = (
    "file attached|Datei angehängt|archivo adjunto|fichier joint|file allegato|arquivo anexado|ficheiro anexado|"
    "bestand bijgevoegd|fil bifogad|plik dołączony|dosya ekli|файл добавлен|"
    "ملف مرفق|الملف مرفق|文件附件|附件|檔案附件|ファイル添付|添付ファイル|파일 첨부됨|file terlampir|fail dilampirkan|"
    "tiedosto liitetty|fil vedlagt|vedhæftet fil|soubor byl přiložen|súbor priložený|fájl csatolva|fișier atașat|"
    "файл додано|קובץ מצורף|tệp đính kèm|tệp được đính kèm|ไฟล์แนบ"
)
_BRACKETED = re.compile(
    rf"(?P<mark>{_M})<(?P<word>[^<>:\n]{{1,30}}?){_B}?[:：]{_B}{{0,4}}{_M}(?P<name>[^<>\n]{{1,300}})>{_M}"
)
_NAMED = re.compile(
    rf"^(?P<mark>{_M})(?P<name>[^\n]{{1,300}}\.\w{{1,8}}){_M}{_B}\((?P<word>[^()\n]{{1,60}})\){_M}\r?$", re.MULTILINE
)
_OMITTED = (
    "omitted|omitid[oa]|omise?s?|omess[oaie]|ocult[oa]|weggelassen|ausgeschlossen|weggelaten|utelämnad|udeladt|pominięto|"
    "dahil edilmedi|absente?|опущен[оа]?|пропущен[оы]?|без медиа|não revelad|uten |jätetty|jätettiin|disertakan|"
    "dikecualikan|kihagyva|vynechan|nezahrnut|omis[ăe]|пропущен|הושמט|"
    "לא נכלל|bị bỏ qua|なし|含まれていません|제외|(?:تم )?استبعاد|غير مدرجة?|생략|已省略|省略"
)
_ANGLES = re.compile(rf"^<[^<>\n:]*(?:{_OMITTED})[^<>\n:]*>$", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    rf"^(?:(?P<name>[^\n]{{1,300}}\.\w{{1,8}}) •[^\n]{{0,60}})?\u200e"
    rf"(?P<what>[^\n.!?]{{0,40}}(?:{_OMITTED})[^\n.!?]{{0,20}})$",
    re.IGNORECASE,
)
_EDITED = re.compile(
    rf"<{_M}(?:This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje|"
    r"Este mensaje fue editado|Ce message a été modifié|Mensagem editada|Esta mensagem foi editada|"
    r"Questo messaggio è stato modificato|Dit bericht is bewerkt|Bu mesaj düzenlendi|Данное сообщение изменено|"
    r"تم تعديل هذه الرسالة|تم تحرير هذه الرسالة|此消息已编辑|此訊息已編輯|このメッセージは編集されました|"
    r"Mensaje editado|Message modifié|Messaggio modificato|Bericht bewerkt|Сообщение изменено|Повідомлення змінено|"
    r"Pesan ini (?:telah )?diedit|Wiadomość została zmieniona|Meddelandet (?:har )?redigerat?s?|"
    rf"이 메시지(?:가|는) 수정(?:되었습니다|됨)|הודעה זו נערכה)\.?{_M}>[{MARKS}\s]*$"
    # In the form with brackets the app's own words follow a mark, in whatever language.
    rf"|(?<=[^{MARKS}\s])[ \n]\u200e<{_M}[^<>:.\n]{{6,60}}\.?{_M}>[{MARKS}\s]*$"
)
_KINDS: dict[str, tuple[Kind, AttachmentKind]] = {
    **dict.fromkeys(("jpg", "jpeg", "png", "heic"), ("photo", "photo")),
    **dict.fromkeys(("mp4", "mov", "3gp", "gif", "mkv"), ("video", "video")),
    **dict.fromkeys(("opus", "ogg", "amr"), ("voice", "voice")),
    **dict.fromkeys(("mp3", "m4a", "aac", "wav"), ("file", "audio")),
    "webp": ("sticker", "sticker"),
    "vcf": ("contact", "file"),
}
_WORDS: dict[str, tuple[Kind, AttachmentKind]] = {
    "image": ("photo", "photo"),
    "photo": ("photo", "photo"),
    "bild": ("photo", "photo"),
    "imag": ("photo", "photo"),
    "immag": ("photo", "photo"),
    "afbeelding": ("photo", "photo"),
    "صور": ("photo", "photo"),
    "video": ("video", "video"),
    "vídeo": ("video", "video"),
    "فيديو": ("video", "video"),
    "gif": ("video", "video"),
    "audio": ("voice", "voice"),
    "صوت": ("voice", "voice"),
    "sticker": ("sticker", "sticker"),
    "ملصق": ("sticker", "sticker"),
}
"""By the beginning of the word in a placeholder; everything else is a file."""


@dataclass(frozen=True, slots=True)
class Content:
    """`refused`: names of files that no file may have; their lines stay text."""

    text: str
    kind: Kind = "text"
    attachments: tuple[Attachment, ...] = ()
    is_edited: bool = False
    refused: int = 0


def content_of(raw: str, sizes: Mapping[str, int]) -> Content:
    """What a message says. `sizes`: the files that came along with the chat, in bytes, by name."""
    text = _EDITED.sub("", raw)
    is_edited = len(text) != len(raw)
    left = text.strip(f"{BLANKS}\r\n")
    placeholder = _PLACEHOLDER.match(left.rstrip(MARKS))
    if placeholder is not None or _ANGLES.match(trimmed(left)):
        what = placeholder["what"] if placeholder is not None else ""
        kind, attachment_kind = _of_words(what)
        name = trimmed((placeholder["name"] or "") if placeholder is not None else "") or trimmed(what or left)
        return Content("", kind, (Attachment(attachment_kind, name.strip("<>")),), is_edited)
    refused = 0
    for found in [*_BRACKETED.finditer(left), *_NAMED.finditer(left)]:
        words = _ATTACHED if found.re is _BRACKETED else _FILE_ATTACHED
        name = trimmed(found["name"])
        is_attached = bool(found["mark"]) or re.fullmatch(words, trimmed(found["word"]), re.IGNORECASE)
        if not is_attached or "." not in name:
            continue
        if "/" in name or "\\" in name or ".." in name or "\0" in name:
            refused += 1
            continue
        kind, attachment_kind = _KINDS.get(name.rpartition(".")[2].lower(), ("file", "file"))
        caption = trimmed(left[: found.start()] + left[found.end() :])
        attachment = Attachment(attachment_kind, name, size_bytes=sizes.get(name))
        return Content(caption, kind, (attachment,), is_edited, refused)
    return Content(trimmed(left), is_edited=is_edited, refused=refused)


def _of_words(what: str) -> tuple[Kind, AttachmentKind]:
    words = re.split(rf"[{BLANKS}]+", trimmed(what).lower())
    for word in words:
        for beginning, kinds in _WORDS.items():
            if word.removeprefix("ال").startswith(beginning):
                return kinds
    return "file", "file"
