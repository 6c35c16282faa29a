"""A server of tools made with the official SDK, as a process of its own.

python mcp_server.py                on stdin and stdout
python mcp_server.py PORT           over HTTP on 127.0.0.1
python mcp_server.py --broken       says why on stderr and ends
"""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent, ToolAnnotations

server = MCPServer("shelf")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(word: str) -> str:
    """Looks a word up."""
    return f"about {word}"


@server.tool()
def wipe(shelf: int) -> str:
    """Clears a shelf."""
    return f"shelf {shelf} is clear"


@server.tool(name="read.all")
def read_all() -> str:
    """Everything at once."""
    return "x" * 300_000


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """A picture."""
    return [TextContent(text="the vase"), ImageContent(data="AAAA", mime_type="image/png")]


@server.tool()
def fall() -> str:
    """Fails."""
    raise ToolError("the shelf fell")


@server.tool()
def leave() -> str:
    """Ends the server in the middle of a call."""
    os._exit(3)


@server.tool()
def secrets() -> str:
    """The variables of the server."""
    return " ".join(sorted(os.environ))


if __name__ == "__main__":
    if sys.argv[1:] == ["--broken"]:
        sys.exit(f"shelf: no wood for {os.environ.get('SHELF_KEY')}")
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
