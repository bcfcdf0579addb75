"""timm's own model tests on our models: `python -m tests.timm_suite [--models 'sret_*']`.

timm's wheel has no tests; its source distribution has, and pip fetches it. `fetch` does that,
`timm_plugin` is loaded into the pytest that runs them and narrows them to our models, `__main__`
runs them and prints one line of JSON with the counts.
"""
