// Which JSON schemas a reply can be held to: brings one into the form that node-llama-cpp makes a grammar of.
//
// node-llama-cpp passes over keywords that it does not know, bounds of numbers among them. A reply must hold to
// the whole schema, so a keyword that the grammar cannot hold is refused here rather than passed over.

import {RequestError} from "./errors.mjs";

const NOTES = ["$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "title"];
const CHOICES = ["$ref", "allOf", "anyOf", "const", "enum", "oneOf"];
const BOUNDS = ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"];
const TYPES = {
    array: array,
    boolean: () => ({type: "boolean"}),
    integer: integer,
    null: () => ({type: "null"}),
    number: number,
    object: object,
    string: string,
};
const KNOWN = new Set([
    ...["$defs", "type", "items", "maxItems", "minItems", "additionalProperties", "properties", "required"],
    ...["format", "maxLength", "minLength"],
    ...[...NOTES, ...CHOICES, ...BOUNDS],
]);
const FORMATS = ["date", "date-time", "time"];
const WIDEST_RANGE = 1000; // an integer's range becomes a list of its values
const MOST_REPEATED = 2000; // llama.cpp's grammars drop a longer bound without a word
const DEEPEST = 32;

/** Gives a schema whose every keyword the grammar holds. Throws a RequestError that names the place otherwise. */
export function enforceable(schema) {
    const defs = Object.entries(schema.$defs ?? {});
    const names = defs.map(([name]) => name);
    if (schema.type !== "object" && schema.$ref === undefined)
        refuse("schema", `must have the type 'object', got ${JSON.stringify(schema.type)}`);
    const root = node(schema, "schema", names, 0);
    const made = defs.map(([name, def]) => [name, node(def, `schema.$defs.${name}`, names, 0)]);
    return made.length > 0 ? {...root, $defs: Object.fromEntries(made)} : root;
}

function refuse(place, words) {
    throw new RequestError(400, `${place} ${words}`, {param: "response_format", code: "unsupported_schema"});
}

function isObject(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value);
}

function node(schema, place, names, depth) {
    if (!isObject(schema)) refuse(place, `must be an object, got ${JSON.stringify(schema)}`);
    if (depth > DEEPEST) refuse(place, `lies deeper than ${DEEPEST} levels`);
    const unknown = Object.keys(schema).find((key) => !KNOWN.has(key));
    if (unknown !== undefined) refuse(place, `has the keyword '${unknown}', which no reply can be held to here`);
    const choices = CHOICES.filter((key) => key in schema);
    if (choices.length > 1) refuse(place, `has ${choices.join(" and ")}; only one of them can be held`);
    if (choices.length === 1) return chosen(schema[choices[0]], choices[0], place, names, depth);
    const types = [schema.type].flat();
    const strange = types.find((type) => !Object.hasOwn(TYPES, type));
    if (types.length === 0 || types.includes(strange)) refuse(place, `has the type ${JSON.stringify(strange)}`);
    const made = types.map((type) => TYPES[type](schema, place, names, depth));
    return made.length === 1 ? made[0] : {oneOf: made};
}

function chosen(value, key, place, names, depth) {
    if (key === "$ref") {
        const name = String(value).match(/^#\/\$defs\/(.+)$/)?.[1];
        if (!names.includes(name)) refuse(place, `refers to ${JSON.stringify(value)}, which is not in schema.$defs`);
        return {$ref: value};
    }
    const values = key === "const" ? [value] : value;
    if (!Array.isArray(values) || values.length === 0) refuse(place, `needs a list of at least one under '${key}'`);
    if (key === "const" || key === "enum") {
        if (values.some((one) => one !== null && typeof one === "object")) refuse(place, "lists an object or a list");
        return {enum: values};
    }
    if (key === "allOf" && values.length > 1) refuse(place, "has an allOf of several, which cannot be held");
    return {oneOf: values.map((part, i) => node(part, `${place}.${key}[${i}]`, names, depth + 1))};
}

function object(schema, place, names, depth) {
    const properties = Object.entries(schema.properties ?? {});
    const missing = (schema.required ?? []).find((name) => !Object.hasOwn(schema.properties ?? {}, name));
    if (missing !== undefined) refuse(place, `requires '${missing}', which is not among its properties`);
    const parts = properties.map(([name, part]) => [name, node(part, `${place}.${name}`, names, depth + 1)]);
    const more = schema.additionalProperties ?? false;
    const others = isObject(more) ? node(more, `${place}.additionalProperties`, names, depth + 1) : more === true;
    return {type: "object", properties: Object.fromEntries(parts), additionalProperties: others};
}

function array(schema, place, names, depth) {
    const {items, minItems, maxItems} = schema;
    if (!isObject(items)) refuse(place, "is a list that does not say what its items are");
    counts({minItems, maxItems}, place);
    return given({type: "array", items: node(items, `${place}.items`, names, depth + 1), minItems, maxItems});
}

function counts(bounds, place) {
    for (const [key, value] of Object.entries(given(bounds)))
        if (!Number.isInteger(value) || value < 0 || value > MOST_REPEATED)
            refuse(place, `has ${key} ${JSON.stringify(value)}; whole numbers to ${MOST_REPEATED} can be held`);
}

function string({format, minLength, maxLength}, place) {
    counts({minLength, maxLength}, place);
    if (format === undefined) return given({type: "string", minLength, maxLength});
    if (!FORMATS.includes(format)) refuse(place, `has the format '${format}', which no reply can be held to here`);
    return {type: "string", format};
}

function number(schema, place) {
    if (BOUNDS.some((key) => key in schema)) refuse(place, "bounds a number; use an integer, or list the values");
    return {type: "number"};
}

function integer(schema, place) {
    if (!BOUNDS.some((key) => key in schema)) return {type: "integer"};
    const low = schema.minimum ?? schema.exclusiveMinimum + 1;
    const high = schema.maximum ?? schema.exclusiveMaximum - 1;
    if (!Number.isInteger(low) || !Number.isInteger(high) || high < low || high - low >= WIDEST_RANGE)
        refuse(place, `must have both bounds, and at most ${WIDEST_RANGE} values between them`);
    return {enum: Array.from({length: high - low + 1}, (_, i) => low + i)};
}

function given(schema) {
    return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
