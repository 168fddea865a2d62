// Values of JavaScript as lines of JSON, and calls of a function.
//
// serve(find, module) answers calls: it reads them from descriptor 3 and writes answers to 4.
// ask(arguments) makes a call in the tests' stub: it writes to 3 and reads from 4.
"use strict";
const fs = require("fs");
const { types } = require("util");

const MOST_BYTES = 8 << 20;
const MOST_DEPTH = 100;
// How a tester ends where no answer can be used, so that it never goes on with a wrong value.
const NO_ANSWER = 71, NO_JSON = 72, TOO_LONG = 74, NO_READER = 75, TESTS_AT_FAULT = 77;

// ---- values ----------------------------------------------------------------------------------------------------

const encodeNumber = (number) => {
  if (!Number.isFinite(number)) return `{"$f":"${number}"}`;
  if (Object.is(number, -0)) return "-0.0";
  const isLarge = Number.isInteger(number) && Math.abs(number) < 1e21; // of which String leaves out digits
  return String(isLarge ? BigInt(number) : number);
};

const encodeObject = (value, depth) => {
  const list = (items) => `[${Array.from(items, (item) => encode(item, depth + 1)).join(",")}]`;
  const pairs = (entries) => `[${Array.from(entries, (entry) => list(entry)).join(",")}]`;
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && !types.isDataView(value))) return list(value);
  if (types.isMap(value)) return `{"$m":${pairs(Map.prototype.entries.call(value))}}`;
  if (types.isSet(value)) return `{"$s":${list(Set.prototype.values.call(value))}}`;
  if (types.isBoxedPrimitive(value)) return encode(value.valueOf(), depth + 1);
  const isForeign = types.isNativeError(value) || types.isDate(value) || types.isRegExp(value) || types.isPromise(value);
  if (isForeign) return `{"$x":${JSON.stringify(Object.prototype.toString.call(value))}}`;
  return `{"$o":${pairs(Object.entries(value))}}`;
};

const encode = (value, depth = 0) => {
  if (depth > MOST_DEPTH) throw new Error(`nested more than ${MOST_DEPTH} deep`);
  switch (typeof value) {
    case "undefined": return '{"$u":1}';
    case "boolean": return String(value);
    case "string": return JSON.stringify(value);
    case "number": return encodeNumber(value);
    case "bigint": return `{"$i":"${value}"}`;
    case "object": return value === null ? "null" : encodeObject(value, depth);
    default: return `{"$x":"${typeof value}"}`;
  }
};

const makeObject = (pairs) => {
  const object = {};
  for (const [key, value] of pairs) // also a key such as __proto__ is a property of its own
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  return object;
};

// A client's mapping is an object where its keys are what an object's literal may have; another program's is a Map.
const makeMapping = (pairs, isClients) => {
  const isLiteral = isClients && pairs.every(([key]) => typeof key === "string" || typeof key === "number");
  return isLiteral ? makeObject(pairs) : new Map(pairs);
};

const decode = (tree, isClients, depth = 0) => {
  if (depth > 4 * MOST_DEPTH) throw new Error("nested too deep");
  const deeper = (content) => decode(content, isClients, depth + 1);
  if (Array.isArray(tree)) return tree.map(deeper);
  if (tree === null || typeof tree !== "object") return tree;
  if (Object.hasOwn(tree, "$u")) return undefined;
  if (Object.hasOwn(tree, "$f")) return Number(tree.$f);
  if (Object.hasOwn(tree, "$i")) return BigInt(tree.$i);
  if (Object.hasOwn(tree, "$m")) return makeMapping(deeper(tree.$m), isClients);
  if (Object.hasOwn(tree, "$o")) return makeObject(deeper(tree.$o));
  if (Object.hasOwn(tree, "$s")) return new Set(deeper(tree.$s));
  throw new Error("a value that cannot travel");
};

// ---- lines -----------------------------------------------------------------------------------------------------

class Lines {
  constructor(input, output) {
    this.input = input;
    this.output = output;
    this.buffer = Buffer.alloc(0);
  }

  next() {
    const blocks = [this.buffer];
    let size = this.buffer.length;
    for (let block = this.buffer; ; block = blocks.at(-1)) {
      const end = block.indexOf(10);
      if (end >= 0) {
        this.buffer = block.subarray(end + 1);
        blocks[blocks.length - 1] = block.subarray(0, end);
        return Buffer.concat(blocks).toString();
      }
      if (size > MOST_BYTES) process.exit(TOO_LONG);
      blocks.push(this.read());
      size += blocks.at(-1).length;
      if (blocks.at(-1).length === 0) return null;
    }
  }

  read() {
    const block = Buffer.alloc(65536);
    for (;;) {
      try {
        return block.subarray(0, fs.readSync(this.input, block));
      } catch (fault) {
        if (fault.code === "EOF") return block.subarray(0, 0);
        if (fault.code !== "EAGAIN" && fault.code !== "EINTR") throw fault;
      }
    }
  }

  put(text) {
    const bytes = Buffer.from(text + "\n");
    for (let sent = 0; sent < bytes.length; ) {
      try {
        sent += fs.writeSync(this.output, bytes, sent);
      } catch (fault) {
        if (fault.code !== "EAGAIN" && fault.code !== "EINTR") process.exit(NO_READER);
      }
    }
  }
}

// ---- the answerer ----------------------------------------------------------------------------------------------

const changedOf = (values, before) =>
  before.flatMap((text, index) => {
    const now = encode(values[index]);
    return now === text ? [] : [`[${index},${now}]`];
  });

const answer = async (call, line) => {
  const request = JSON.parse(line);
  const isClients = Array.isArray(request);
  const values = decode(isClients ? request : request.a, isClients);
  const before = values.map((value) => encode(value));
  let value = call(...values);
  if (types.isPromise(value)) value = await value;
  const isAsked = !isClients || value === undefined; // without a result, what it changed is one
  return `{"v":${encode(value)}${isAsked ? `,"a":[${changedOf(values, before)}]` : ""}}`;
};

const methodOf = (owner, name) => {
  if (typeof owner !== "function") return undefined;
  if (typeof owner[name] === "function") return (...values) => owner[name](...values);
  return typeof owner.prototype?.[name] === "function" ? (...values) => new owner()[name](...values) : undefined;
};

// Looks for the function: `local` is what the completion's own scope has under its name.
const find = (local, exported, owner, name) => {
  const places = [local, exported?.[name], methodOf(owner, name), exported, globalThis[name]];
  const call = places.find((place) => typeof place === "function");
  if (call === undefined) throw new Error(`no function ${name}`);
  return call;
};

const serve = async (local, exported, owner, name) => {
  const call = find(local, exported, owner, name);
  const lines = new Lines(3, 4);
  for (let line = lines.next(); line !== null; line = lines.next()) {
    let text;
    try {
      text = await answer(call, line);
    } catch (fault) {
      text = `{"e":${JSON.stringify(String(fault))}}`;
    }
    lines.put(text);
  }
  process.exit(0);
};

// ---- the tester's stub -----------------------------------------------------------------------------------------

const asking = { lines: new Lines(4, 3), calls: 0 };

const writeBack = (value, changed) => {
  if (Array.isArray(value) && Array.isArray(changed)) value.splice(0, value.length, ...changed);
  else if (types.isMap(value) || types.isSet(value)) {
    value.clear();
    for (const item of changed) types.isMap(value) ? value.set(...item) : value.add(item);
  } else if (value !== null && typeof value === "object") {
    for (const key of Object.keys(value)) delete value[key];
    Object.assign(value, changed);
  }
};

const readReply = (line) => {
  try {
    const reply = JSON.parse(line);
    const changed = (reply.a ?? []).map(([index, value]) => [Number(index), decode(value, false)]);
    if (typeof reply.e === "string") return { fault: reply.e };
    if (!Object.hasOwn(reply, "v")) process.exit(NO_JSON);
    return { value: decode(reply.v, false), changed };
  } catch {
    process.exit(NO_JSON);
  }
};

const ask = (...values) => {
  asking.calls++;
  asking.lines.put(`{"a":[${values.map((value) => encode(value))}]}`);
  const line = asking.lines.next();
  if (line === null) process.exit(NO_ANSWER);
  const { fault, value, changed } = readReply(line);
  if (fault !== undefined) throw new Error(`the function threw: ${fault}`);
  for (const [index, item] of changed) writeBack(values[index], item);
  return value;
};

// Runs tests: a failed console.assert ends them, and so does an end without a call, which shows nothing.
const test = (path) => {
  console.assert = (isTrue, ...reason) => {
    if (isTrue) return;
    console.error("assertion failed", ...reason);
    process.exit(1);
  };
  process.on("exit", (code) => {
    if (code === 0 && asking.calls === 0) process.exit(TESTS_AT_FAULT);
  });
  try {
    require(path);
  } catch (fault) {
    console.error(fault);
    process.exit(asking.calls === 0 ? TESTS_AT_FAULT : 1);
  }
};

module.exports = { ask, decode, encode, serve, test };
