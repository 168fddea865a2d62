// Answers that are errors, in the shape of OpenAI's.

/** Thrown where a request is to be answered with an error. */
export class RequestError extends Error {
    constructor(status, message, {param = null, code = null} = {}) {
        super(message);
        this.status = status;
        this.body = {error: {message, type: status < 500 ? "invalid_request_error" : "server_error", param, code}};
    }
}
