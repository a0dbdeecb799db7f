"""What a server answers where it has no answer: a status and one sentence."""


class RequestError(Exception):
    """A request that is not answered.

    Args:
        sentence: what is wrong, and what to do; never a path of the machine.
        retry_after: in how many seconds to try again.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        code: str | None = None,
        parameter: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.code, self.parameter = code, parameter
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)


def bad_request(sentence: str, parameter: str | None = None) -> RequestError:
    """A request that is not as it must be: 400.

    Example:
        >>> bad_request("`instances` is empty; give at least one.").status
        400
    """
    return RequestError(400, sentence, parameter=parameter)


def fault_body(fault: RequestError, openai: bool) -> dict[str, object]:
    """The JSON of a fault, in TensorFlow Serving's form or in OpenAI's.

    Example:
        >>> fault_body(bad_request("`input` is empty.", "input"), openai=False)
        {'error': '`input` is empty.'}
        >>> fault_body(bad_request("`input` is empty.", "input"), openai=True)["error"]["type"]
        'invalid_request_error'
    """
    if not openai:
        return {"error": fault.sentence}
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(
        fault.status, "invalid_request_error" if fault.status < 500 else "server_error"
    )
    return {
        "error": {
            "message": fault.sentence,
            "type": kind,
            "param": fault.parameter,
            "code": fault.code,
        }
    }
