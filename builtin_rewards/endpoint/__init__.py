"""How a served model is asked, for judges and reward models: one request well sent, or one error that says why not.

``endpoint`` tries with waits under one deadline, past ``limits`` and the ``budget``. ``client`` sends by openai's
client over ``connections``, ``foreign`` reads what comes back, and ``provider_errors`` knows what each provider's
refusal means.
"""
