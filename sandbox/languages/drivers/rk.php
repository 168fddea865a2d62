<?php
// Values of PHP as lines of JSON, and calls of a function. A list is an array with the keys 0, 1, ...; so an empty
// array is a list.
namespace RewardkitDriver;

const MOST_DEPTH = 100, MOST_BYTES = 8 << 20;
// How a tester ends where no answer can be used, so that it never goes on with a wrong value.
const NO_ANSWER = 71, NO_JSON = 72, TESTS_AT_FAULT = 77;

function decode($tree) {
    if (!is_array($tree)) return $tree;
    if (array_is_list($tree)) return array_map('RewardkitDriver\decode', $tree);
    $tag = array_key_first($tree);
    switch ($tag) {
        case '$f': return ['NaN' => NAN, '-Infinity' => -INF][$tree[$tag]] ?? INF;
        case '$i': return is_numeric($tree[$tag]) ? $tree[$tag] + 0 : null;
        case '$m': case '$o': return array_column(array_map(fn ($pair) => array_map('RewardkitDriver\decode', $pair), $tree[$tag]), 1, 0);
        case '$s': return array_map('RewardkitDriver\decode', $tree[$tag]);
    }
    return null;
}

function encode($value, $depth = 0) {
    if ($depth > MOST_DEPTH) throw new \Exception('nested too deep');
    if (is_float($value)) return encode_float($value);
    if (is_string($value)) return encode_text($value);
    if (is_null($value) || is_bool($value) || is_int($value)) return json_encode($value);
    if (is_array($value) && array_is_list($value)) return items($value, $depth);
    if (is_array($value) || $value instanceof \stdClass) return '{"$m":' . pairs((array) $value, $depth) . '}';
    if ($value instanceof \Traversable) return items(iterator_to_array($value, false), $depth);
    return '{"$x":' . encode_text(get_debug_type($value)) . '}';
}

function items($values, $depth) {
    return '[' . implode(',', array_map(fn ($item) => encode($item, $depth + 1), $values)) . ']';
}

function pairs($table, $depth) {
    return items(array_map(null, array_keys($table), array_values($table)), $depth);
}

function encode_float($number) {
    if (is_nan($number)) return '{"$f":"NaN"}';
    if (is_infinite($number)) return $number > 0 ? '{"$f":"Infinity"}' : '{"$f":"-Infinity"}';
    return json_encode($number, JSON_PRESERVE_ZERO_FRACTION);
}

function encode_text($text) {
    return json_encode($text, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE);
}

function answer($call, $line) {
    try {
        $request = json_decode($line, true, 4 * MOST_DEPTH, JSON_THROW_ON_ERROR);
        $isTesters = !array_is_list($request);
        $values = decode($isTesters ? $request['a'] : $request);
        $before = array_map('RewardkitDriver\encode', $values);
        $result = encode($call(...$values));
        if ($result !== 'null' && !$isTesters) return '{"v":' . $result . '}';
        $changed = array_diff_assoc(array_map('RewardkitDriver\encode', $values), $before);
        $pairs = array_map(fn ($index, $text) => "[$index,$text]", array_keys($changed), $changed);
        return '{"v":' . $result . ',"a":[' . implode(',', $pairs) . ']}'; // without a result, what it changed is one
    } catch (\Throwable $fault) {
        return '{"e":' . encode_text(get_class($fault) . ': ' . $fault->getMessage()) . '}';
    }
}

// The function of a name in any namespace, or else a method of a class.
function find($owner, $name) {
    foreach (get_defined_functions()['user'] as $function) {
        $is_named = strcasecmp(substr(strrchr("\\$function", '\\'), 1), $name) === 0;
        if ($owner === '' && $is_named && strncmp($function, 'rewardkitdriver\\', 16) !== 0) return $function;
    }
    foreach (get_declared_classes() as $class) {
        if (substr(strrchr("\\$class", '\\'), 1) !== ($owner ?: 'Solution')) continue;
        $method = new \ReflectionMethod($class, $name);
        return $method->isStatic() ? [$class, $name] : [new $class(), $name];
    }
    throw new \Exception("no function $name");
}

function serve($owner, $name) {
    $call = find($owner, $name);
    $input = fopen('php://fd/3', 'r');
    $output = fopen('php://fd/4', 'w');
    ini_set('serialize_precision', '-1');
    while (($line = fgets($input)) !== false) fwrite($output, answer($call, $line) . "\n");
    exit(0);
}

// ---- the tester ---------------------------------------------------------------------------------------------------

final class Asking {
    public static $calls = 0, $to, $from;
}

// Makes a call in the tests' stub; returns its value, and what it changed by the arguments' indices.
function ask($values) {
    Asking::$to ??= fopen('php://fd/3', 'w');
    Asking::$from ??= fopen('php://fd/4', 'r');
    Asking::$calls++;
    fwrite(Asking::$to, '{"a":' . items($values, 0) . "}\n");
    $line = fgets(Asking::$from, MOST_BYTES);
    if ($line === false) exit(NO_ANSWER);
    try {
        $reply = json_decode($line, true, 4 * MOST_DEPTH, JSON_THROW_ON_ERROR);
        $fault = $reply['e'] ?? null;
        if ($fault === null && !array_key_exists('v', $reply)) exit(NO_JSON);
        $value = decode($reply['v'] ?? null);
        $changed = array_column(array_map(fn ($pair) => [$pair[0], decode($pair[1])], $reply['a'] ?? []), 1, 0);
    } catch (\Throwable) {
        exit(NO_JSON);
    }
    if ($fault !== null) throw new \Exception("the function threw: $fault");
    return [$value, $changed];
}

// Runs tests; an end without a call shows nothing.
function test($path) {
    ini_set('serialize_precision', '-1');
    register_shutdown_function(function () {
        if (Asking::$calls === 0) exit(TESTS_AT_FAULT);
    });
    require $path;
}
