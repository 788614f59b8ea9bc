"""What an API server does to objects: patches, server-side apply, scales, pages of lists, failures.

Everything here works on decoded JSON, without storage or requests. The API server of the dev cluster and `FakeClient`
both call it.
"""
