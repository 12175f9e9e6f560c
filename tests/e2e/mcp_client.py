"""Calls an MCP server by the Python SDK's sign-in: prints the address to open, reads the one that the browser came back to,
prints the answer."""

import asyncio
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

server, client_metadata_url, callback = sys.argv[1:]


class Memory:
    """What the sign-in keeps."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def open_browser(url):
    print(url, flush=True)


async def come_back():
    line = await asyncio.to_thread(sys.stdin.readline)
    query = {name: values[0] for name, values in parse_qs(urlparse(line.strip()).query).items()}
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def main():
    provider = OAuthClientProvider(
        server_url=server,
        client_metadata=OAuthClientMetadata(redirect_uris=[callback], client_name="Assistant"),
        storage=Memory(),
        redirect_handler=open_browser,
        callback_handler=come_back,
        client_metadata_url=client_metadata_url,
    )
    async with httpx2.AsyncClient(auth=provider) as client:
        answer = await client.post(server, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        print(answer.status_code, answer.text, flush=True)


asyncio.run(main())
