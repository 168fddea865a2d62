// What may be asked of /v1/chat/completions: reads a body into the few things that the model needs.
//
// What this server does not do is refused, not passed over, where passing over would change the reply's meaning.

import {RequestError} from "./errors.mjs";
import {enforceable} from "./schema.mjs";

const ROLES = {assistant: "assistant", developer: "system", system: "system", user: "user"};
const REFUSED = ["audio", "frequency_penalty", "functions", "logit_bias", "presence_penalty", "stream", "tools"];
const MOST_TOP_LOGPROBS = 20;
const ANY_WHOLE = {low: Number.MIN_SAFE_INTEGER, high: Number.MAX_SAFE_INTEGER, whole: true};

function refuse(param, words) {
    throw new RequestError(400, `${param} ${words}`, {param});
}

function number(body, param, {otherwise, low, high, whole = false}) {
    const value = body[param] ?? otherwise;
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !(value >= low && value <= high) || (whole && !Number.isInteger(value)))
        refuse(param, `must be a ${whole ? "whole " : ""}number from ${low} to ${high}, got ${JSON.stringify(value)}`);
    return value;
}

/** Gives what is asked for, everything in its range. Throws a RequestError that names the parameter. */
export function read(body, model) {
    if (body === null || typeof body !== "object" || Array.isArray(body))
        throw new RequestError(400, "the body must be a JSON object");
    if (typeof body.model !== "string") refuse("model", "must be a string");
    if (body.model !== model)
        throw new RequestError(404, `model '${body.model}' is not served here; '${model}' is`, {
            param: "model",
            code: "model_not_found",
        });
    for (const param of REFUSED) if (isAsked(body[param])) refuse(param, "is not supported by this server");
    if ((body.n ?? 1) !== 1) refuse("n", "must be 1; ask again for another sample");
    const top = number(body, "top_logprobs", {otherwise: 0, low: 0, high: MOST_TOP_LOGPROBS, whole: true});
    if (top > 0 && body.logprobs !== true) refuse("top_logprobs", "needs logprobs to be true");
    const most = {...ANY_WHOLE, low: 1};
    return {
        messages: messages(body.messages),
        maxTokens: number(body, "max_completion_tokens", most) ?? number(body, "max_tokens", most) ?? Infinity,
        temperature: number(body, "temperature", {otherwise: 1, low: 0, high: 2}),
        topP: number(body, "top_p", {otherwise: 1, low: 0, high: 1}),
        seed: (number(body, "seed", ANY_WHOLE) ?? Math.floor(Math.random() * 2 ** 32)) >>> 0,
        stop: stops(body.stop),
        schema: schema(body.response_format),
        logprobs: body.logprobs === true,
        topLogprobs: top,
    };
}

function isAsked(value) {
    const empty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
    return value !== undefined && value !== null && value !== false && value !== 0 && !empty;
}

function messages(given) {
    if (!Array.isArray(given) || given.length === 0) refuse("messages", "must be a list of at least one message");
    return given.map((message, i) => {
        const {role, content} = message ?? {};
        if (!Object.hasOwn(ROLES, role))
            refuse(`messages[${i}]`, `has the role ${JSON.stringify(role)}; known: ${Object.keys(ROLES).join(", ")}`);
        return {role: ROLES[role], text: text(content, `messages[${i}]`)};
    });
}

function text(given, place) {
    if (typeof given === "string") return given;
    if (!Array.isArray(given) || !given.every((part) => part?.type === "text" && typeof part.text === "string"))
        refuse(place, "must have a string as content, or a list of text parts");
    return given.map((part) => part.text).join("");
}

function stops(given) {
    const list = given === undefined || given === null ? [] : [given].flat();
    if (list.length > 4 || !list.every((one) => typeof one === "string" && one !== ""))
        refuse("stop", "must be a string or a list of at most 4, none of them empty");
    return list;
}

function schema(format) {
    const type = format?.type ?? "text";
    if (type === "text") return null;
    if (type === "json_object") return {type: "object", additionalProperties: true};
    if (type !== "json_schema")
        refuse("response_format", `has the type ${JSON.stringify(type)}; known: text, json_object, json_schema`);
    const given = format.json_schema?.schema;
    if (given === null || typeof given !== "object") refuse("response_format", "must have a schema in json_schema");
    return enforceable(given);
}
