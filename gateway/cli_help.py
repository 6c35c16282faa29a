"""What `hudhud --help` prints. It is a text so that it is there at once; a test holds it to the commands."""

from __future__ import annotations

HELP = """\
Usage: hudhud COMMAND [OPTIONS]

A personal agent that lives where you already talk.

Start
  init                     ask a few questions, write the settings and workspace
  run                      the gateway, until Ctrl-C
  status                   what runs, the channels, the queue, the next jobs
  usage                    what model calls cost
  doctor                   look the home over, with a remedy for each fault

Talk
  chat [TEXT]              one message, or a chat in the terminal
  tool NAME JSON           call one tool as the model would

Memory
  memory search QUERY      find messages, facts and files by words
  memory get REF           open what a search found
  memory save FACT         keep a fact
  memory forget WHAT       remove something remembered, after showing it
  memory recall QUERY      what is known of someone, now or then
  memory retain BULLET     add one fact to today's log
  memory reflect           bring entity pages and opinions up to date
  memory consolidate       sum up the weeks that have ended
  conversations list       the conversations of all channels
  conversations read ID    one conversation
  import whatsapp FILE     take in an exported chat, .txt or .zip
  import telegram FILE     take in result.json, of an account or a chat
  sessions search QUERY    find words in past sessions
  sessions history KEY     the messages of one session
  sessions remove KEY      remove a session or a conversation for good
  mcp                      the retrieval tools for an MCP client, on stdio
  index status             what is indexed, and how far
  index update             take in now what changed
  index rebuild            build the index anew
  index check              whether it holds together

People
  people list              who may talk to it, and the codes that wait
  people pair CODE         let in whoever was given the code
  people allow WHO         let a person in, as in telegram:123456789
  people remove WHO        put a person out again

Queue and clock
  queue list               waiting messages, replies that did not arrive
  queue retry KEY          send a reply again
  queue drop ID            take a message or a reply out
  heartbeat list           all jobs of the clock
  heartbeat next [NAME]    when they are due
  heartbeat run NAME       run one now
  heartbeat history        what ran, was late, skipped or missed
  heartbeat on NAME        switch a job on
  heartbeat off NAME       switch a job off
  procedure list           what is worth doing again
  procedure run NAME [VALUE]  do it now, with WORD=VALUE for what it asks
  tasks [ID]               what the agent did, step by step

Channels
  channels status          how each is, and what to do; --probe asks them
  channels link NAME       link whatsapp by QR, or by code with --phone N
  channels logout NAME     give the account up, forget the session

Keep
  backup FILE              the whole home in one file, while it runs or not
  restore FILE             a home of a backup, in a new or empty folder
  service install          run it as a systemd unit of this user
  service remove           take that unit away

Options of every command
  --home DIR               home folder; else $HUDHUD_HOME, else ~/.hudhud
  --debug                  say where a failure happened
  -h, --help               how one command is used
Commands that print data also take --json.
"""
