// The model: tokens in, tokens out, on a few sequences that are evaluated in one batch.

import path from "node:path";
import {pathToFileURL} from "node:url";

import {RequestError} from "./errors.mjs";

const LONGEST_QUEUE = 512;
const PREFILL = 256; // tokens read at once, between looks at whether the client is still there
const IMPOSSIBLE = -9999; // a log-probability as JSON can have it

function gone() {
    return new RequestError(499, "the client has gone");
}

export class Engine {
    #llama;
    #library;
    #model;
    #wrapper;
    #free;
    #waiting = [];

    /**
     * Loads a model.
     *
     * @param runtime The folder whose node_modules hold node-llama-cpp.
     * @param file The GGUF file.
     * @param context Tokens of one sequence, prompt and reply together.
     * @param sequences How many replies are written at once.
     * @param threads Threads for the arithmetic. More than there are idle cores make it many times slower.
     */
    static async load({runtime, file, context, sequences, threads}) {
        const engine = new Engine();
        const entry = path.join(runtime, "node_modules", "node-llama-cpp", "dist", "index.js");
        engine.#library = await import(pathToFileURL(entry).href);
        engine.#llama = await engine.#library.getLlama({
            gpu: false,
            build: "never",
            maxThreads: threads,
            logger: (level, message) => console.error(`llama.cpp ${level}: ${message.trim()}`),
        });
        engine.#model = await engine.#llama.loadModel({modelPath: file});
        const made = await engine.#model.createContext({contextSize: context, sequences, threads});
        engine.contextSize = made.contextSize;
        engine.#free = Array.from({length: sequences}, () => made.getSequence());
        engine.#wrapper = engine.#library.resolveChatWrapper(engine.#model, {warningLogs: false});
        return engine;
    }

    /** Gives a reply to a request as request.mjs reads it. Throws a RequestError where that cannot be. */
    async complete(request, signal) {
        const prompt = this.#tokens(request.messages);
        const room = this.contextSize - prompt.length;
        if (room < 1)
            throw new RequestError(
                400,
                `the prompt has ${prompt.length} tokens, and the model's context is ${this.contextSize}`,
                {param: "messages", code: "context_length_exceeded"}
            );
        const grammar = request.schema && (await this.#grammar(request.schema));
        const sequence = await this.#take(signal);
        try {
            const limit = Math.min(room, request.maxTokens);
            return await this.#generate({sequence, prompt, grammar, request, signal, limit});
        } catch (fault) {
            await sequence.clearHistory();
            throw fault;
        } finally {
            this.#give(sequence);
        }
    }

    async dispose() {
        await this.#llama.dispose();
    }

    /** Tokens of the prompt. What messages hold is text throughout: no control token can be written in one. */
    #tokens(messages) {
        const history = messages.map(({role, text}) =>
            role === "assistant" ? {type: "model", response: [text]} : {type: role, text}
        );
        const state = this.#wrapper.generateContextState({chatHistory: [...history, {type: "model", response: []}]});
        return state.contextText.tokenize(this.#model.tokenizer);
    }

    async #grammar(schema) {
        try {
            return await this.#llama.createGrammarForJsonSchema(schema);
        } catch (fault) {
            throw new RequestError(400, `no grammar can be made of the schema: ${fault.message}`, {
                param: "response_format",
                code: "unsupported_schema",
            });
        }
    }

    async #generate({sequence, prompt, grammar, request, signal, limit}) {
        await sequence.adaptStateToTokens(prompt.slice(0, -1), false); // the last is evaluated, to be gone on from
        const cached = sequence.nextTokenIndex;
        await this.#prefill(sequence, prompt, signal);
        const state = grammar && new this.#library.LlamaGrammarEvaluationState({model: this.#model, grammar});
        const written = [];
        const logprobs = [];
        let finish = "stop";
        const replies = sequence.evaluateWithMetadata(
            prompt.slice(-1),
            {probabilities: request.logprobs},
            {
                temperature: request.temperature,
                topK: 0,
                topP: request.topP,
                seed: request.seed,
                grammarEvaluationState: state ?? undefined,
            }
        );
        for await (const {token, probabilities} of replies) {
            if (signal.aborted) throw gone();
            written.push(token);
            if (request.logprobs) logprobs.push(this.#likelihood(token, probabilities, request.topLogprobs));
            if (this.#isDone(written, request)) break;
            if (written.length >= limit) {
                finish = "length";
                break;
            }
        }
        return {
            text: this.#text(written, request),
            finish,
            logprobs: request.logprobs ? logprobs : null,
            promptTokens: prompt.length,
            cachedTokens: cached,
            completionTokens: written.length,
        };
    }

    async #prefill(sequence, prompt, signal) {
        const last = prompt.length - 1;
        for (let at = sequence.nextTokenIndex; at < last; at = sequence.nextTokenIndex) {
            if (signal.aborted) throw gone();
            await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, Math.min(at + PREFILL, last)));
        }
    }

    /** Whether the JSON is whole, which the grammar goes on from with blank lines, or a stop string has come. */
    #isDone(written, {schema, stop}) {
        if (schema && this.#model.detokenize(written.slice(-1)).includes("}")) {
            try {
                JSON.parse(this.#model.detokenize(written));
                return true;
            } catch {
                return false;
            }
        }
        return stop.length > 0 && stop.some((one) => this.#model.detokenize(written).includes(one));
    }

    #text(written, {schema, stop}) {
        const text = this.#model.detokenize(written);
        const ends = stop.map((one) => text.indexOf(one)).filter((place) => place >= 0);
        const kept = text.slice(0, Math.min(text.length, ...ends));
        return schema ? kept.trimEnd() : kept;
    }

    #likelihood(token, probabilities, top) {
        const entry = (id, probability) => {
            const text = this.#model.detokenize([id], true);
            const bytes = text.includes("\ufffd") ? null : [...Buffer.from(text)];
            return {token: text, logprob: probability > 0 ? Math.log(probability) : IMPOSSIBLE, bytes};
        };
        const likeliest = [];
        for (const [id, probability] of probabilities) {
            if (likeliest.length >= top) break;
            likeliest.push(entry(id, probability));
        }
        return {...entry(token, probabilities.get(token) ?? 0), top_logprobs: likeliest};
    }

    #take(signal) {
        if (this.#free.length > 0) return Promise.resolve(this.#free.pop());
        if (this.#waiting.length >= LONGEST_QUEUE)
            throw new RequestError(503, `${LONGEST_QUEUE} requests are waiting; try again later`, {code: "overloaded"});
        return new Promise((resolve, reject) => {
            const place = {resolve};
            this.#waiting.push(place);
            signal.addEventListener("abort", () => {
                const index = this.#waiting.indexOf(place);
                if (index < 0) return;
                this.#waiting.splice(index, 1);
                reject(gone());
            });
        });
    }

    #give(sequence) {
        const next = this.#waiting.shift();
        if (next) next.resolve(sequence);
        else this.#free.push(sequence);
    }
}
