// A small model behind an OpenAI-compatible server: POST /v1/chat/completions, GET /v1/models, GET /health.
//
// Prints one line of JSON to stdout when it is ready, and its log to stderr. No prompt and no reply is logged.

import http from "node:http";
import path from "node:path";
import {parseArgs} from "node:util";

import {Engine} from "./engine.mjs";
import {RequestError} from "./errors.mjs";
import {read} from "./request.mjs";

const LONGEST_BODY = 4 * 1024 * 1024;
const KEEP_ALIVE_MS = 75_000; // longer than clients keep idle connections, so that none is closed under a request
const PARENT_CHECK_MS = 500;
const END_MS = 2_000;

const {values: options} = parseArgs({
    options: {
        runtime: {type: "string"},
        model: {type: "string"},
        name: {type: "string"},
        host: {type: "string", default: "127.0.0.1"},
        port: {type: "string", default: "0"},
        context: {type: "string", default: "4096"},
        threads: {type: "string", default: "1"},
        sequences: {type: "string", default: "2"},
        parent: {type: "string"}, // a process that this one is not to outlive
    },
});
const started = Math.floor(Date.now() / 1000);
let asked = 0;
let engine = null; // until the model is loaded

async function bodyOf(request) {
    const parts = [];
    let size = 0;
    for await (const part of request) {
        size += part.length;
        if (size > LONGEST_BODY) throw new RequestError(413, `the body is longer than ${LONGEST_BODY} bytes`);
        parts.push(part);
    }
    try {
        return JSON.parse(Buffer.concat(parts).toString("utf8"));
    } catch (fault) {
        throw new RequestError(400, `the body is not JSON: ${fault.message}`);
    }
}

async function complete(request, signal) {
    const wanted = read(await bodyOf(request), options.name);
    if (engine === null) throw new RequestError(503, "the model is being loaded", {code: "loading"});
    const reply = await engine.complete(wanted, signal);
    return {
        id: `chatcmpl-${process.pid}-${++asked}`,
        object: "chat.completion",
        created: Math.floor(Date.now() / 1000),
        model: options.name,
        choices: [
            {
                index: 0,
                message: {role: "assistant", content: reply.text, refusal: null},
                finish_reason: reply.finish,
                logprobs: reply.logprobs && {content: reply.logprobs, refusal: null},
            },
        ],
        usage: {
            prompt_tokens: reply.promptTokens,
            completion_tokens: reply.completionTokens,
            total_tokens: reply.promptTokens + reply.completionTokens,
            prompt_tokens_details: {cached_tokens: reply.cachedTokens},
        },
    };
}

const model = {id: options.name, object: "model", created: started, owned_by: "local"};
const routes = {
    "GET /health": () => ({status: "ok"}),
    "GET /v1/models": () => ({object: "list", data: [model]}),
    "POST /v1/chat/completions": complete,
};

async function answer(request, signal) {
    const route = `${request.method} ${request.url.split("?")[0]}`;
    if (!Object.hasOwn(routes, route)) throw new RequestError(404, `there is no ${route}`, {code: "unknown_url"});
    return await routes[route](request, signal);
}

function send(response, status, body) {
    const headers = {"content-type": "application/json"};
    if (status === 413) headers.connection = "close"; // the rest of the body is not read
    if (status === 503) headers["retry-after"] = "1";
    response.writeHead(status, headers).end(JSON.stringify(body));
}

const server = http.createServer(async (request, response) => {
    const began = performance.now();
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    let [status, body] = [200, null];
    try {
        body = await answer(request, gone.signal);
    } catch (fault) {
        if (!(fault instanceof RequestError)) console.error(fault);
        const told = fault instanceof RequestError ? fault : new RequestError(500, `our fault: ${fault.message}`);
        [status, body] = [told.status, told.body];
    }
    console.error(`${request.method} ${request.url} ${status} ${Math.round(performance.now() - began)} ms`);
    if (!response.destroyed) send(response, status, body);
});
server.keepAliveTimeout = KEEP_ALIVE_MS;

let ending = false;
async function end() {
    if (ending) return;
    ending = true;
    server.close();
    server.closeAllConnections();
    await Promise.race([engine?.dispose(), new Promise((resolve) => setTimeout(resolve, END_MS))]);
    process.exit(0);
}
process.on("SIGINT", end);
process.on("SIGTERM", end);
if (options.parent !== undefined)
    setInterval(() => process.ppid !== Number(options.parent) && end(), PARENT_CHECK_MS);

server.on("error", (fault) => {
    console.error(`cannot listen: ${fault.message}`);
    process.exit(1);
});
server.listen(Number(options.port), options.host, async () => {
    engine = await Engine.load({
        runtime: path.resolve(options.runtime),
        file: path.resolve(options.model),
        context: Number(options.context),
        sequences: Number(options.sequences),
        threads: Number(options.threads),
    });
    console.log(JSON.stringify({port: server.address().port, context: engine.contextSize}));
});
