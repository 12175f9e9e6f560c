"""Has scim2-tester judge a server. Arguments: the address of SCIM, and an access token."""

import sys

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server, filling

# It fills what it has no example for with any text, and a locale is a language tag (RFC 7643 §4.1.1).
example_of = filling.get_random_example_value
filling.get_random_example_value = lambda path: "de-DE" if str(path).endswith("locale") else example_of(path)

base, token = sys.argv[1:]
http = httpx2.Client(base_url=base, headers={"Authorization": f"Bearer {token}"})
results = check_server(SyncSCIMClient(http))
for result in results:
    if result.status not in (Status.SUCCESS, Status.SKIPPED):
        print(result.status.name, result.title, result.reason)
print("checked", sum(result.status == Status.SUCCESS for result in results))
