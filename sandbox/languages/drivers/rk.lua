-- Values of Lua as lines of JSON, and calls of a function of a completion, which is in a file of its own.
--
-- Lua opens no descriptor by its number. So calls come on standard input, and answers go to standard error; for the
-- completion the input is empty, and its errors go to standard output.
local owner, name = ...
local input, output = io.stdin, io.stderr
io.stdin, io.stderr = io.open('/dev/null'), io.stdout
io.input(io.stdin)

-- The completion may change what it calls.
local byte, char, concat, error, exit = string.byte, utf8.char, table.concat, error, os.exit
local find, format, getlocal, gsub, huge = string.find, string.format, debug.getlocal, string.gsub, math.huge
local next, pack, pcall, sub, tonumber = next, table.pack, pcall, string.sub, tonumber
local tostring, type, type_of_number, unpack = tostring, type, math.type, table.unpack
local globals, stdout = _G, io.stdout

local MOST_DEPTH = 100
local MOST_UNPACKED = 200
local ESCAPES = { n = '\n', t = '\t', r = '\r', b = '\b', f = '\f' }

-- ---- values --------------------------------------------------------------------------------------------------------

local decode

local function quoted(text, at)
    local parts, from = {}, at + 1
    while true do
        local stop = find(text, '["\\]', from)
        parts[#parts + 1] = sub(text, from, stop - 1)
        if byte(text, stop) == 34 then return concat(parts), stop + 1 end
        local letter = sub(text, stop + 1, stop + 1)
        from = stop + 2
        if letter == 'u' then
            local code = tonumber(sub(text, from, from + 3), 16)
            from = from + 4
            if code >= 0xD800 and code < 0xDC00 and find(text, '^\\u[dD][c-fC-F]', from) then
                code = 0x10000 + ((code & 0x3FF) << 10) + (tonumber(sub(text, from + 2, from + 5), 16) & 0x3FF)
                from = from + 6
            end
            letter = char(code)
        end
        parts[#parts + 1] = ESCAPES[letter] or letter
    end
end

-- The items of a list, where it ends, and how many there are: nil among them is no item of a table.
local function list(text, at)
    local items, count = {}, 0
    at = at + 1
    while byte(text, at) ~= 93 do
        if byte(text, at) == 44 then at = at + 1 end
        count = count + 1
        items[count], at = decode(text, at)
    end
    if count <= MOST_UNPACKED then items = { unpack(items, 1, count) } end -- of the size that # counts, nil or not
    return items, at + 1, count
end

local function tagged(tag, content)
    if tag == '$f' then return content == 'NaN' and -(0 / 0) or content == 'Infinity' and huge or -huge end
    if tag == '$i' then return tonumber(content) end
    if tag == '$s' then return content end
    local map = {}
    for index = 1, #content do
        local key, value = content[index][1], content[index][2]
        if key ~= nil and key == key then map[key] = value end
    end
    return map
end

-- The value that begins at a position of a text of JSON, and where it ends.
function decode(text, at)
    local first = byte(text, at)
    if first == 34 then return quoted(text, at) end
    if first == 91 then return list(text, at) end
    if first == 123 then
        local content, stop = decode(text, at + 6)
        return tagged(sub(text, at + 2, at + 3), content), stop + 1
    end
    local _, stop = find(text, '^[%w+.-]+', at)
    local word = sub(text, at, stop)
    if word == 'null' then return nil, stop + 1 end
    if word == 'true' or word == 'false' then return word == 'true', stop + 1 end
    return tonumber(word), stop + 1
end

local function encode_text(text)
    return '"' .. gsub(text, '[%c"\\]', function(letter) return format('\\u%04x', byte(letter)) end) .. '"'
end

local function encode_number(number)
    if type_of_number(number) == 'integer' then return format('%d', number) end
    if number ~= number then return '{"$f":"NaN"}' end
    if number == huge or number == -huge then return number > 0 and '{"$f":"Infinity"}' or '{"$f":"-Infinity"}' end
    local text = format('%.17g', number)
    return find(text, '[.e]') and text or text .. '.0'
end

local encode

local function items(values, count, depth)
    local parts = {}
    for index = 1, count do parts[index] = encode(values[index], depth + 1) end
    return '[' .. concat(parts, ',') .. ']'
end

-- A table is a list where its keys are 1, 2 and so on, with few of them missing; so an empty one is a list.
local function encode_table(values, depth)
    local pairs, count, most = {}, 0, 0
    local plain = {}
    for key, value in next, values do
        count = count + 1
        pairs[count] = { key, value }
        plain[key] = value
        most = type_of_number(key) == 'integer' and key > 0 and most >= 0 and (key > most and key or most) or -1
    end
    if most >= 0 and most <= 2 * count + 8 then return items(plain, most, depth) end
    return '{"$m":' .. items(pairs, count, depth) .. '}'
end

function encode(value, depth)
    if depth > 2 * MOST_DEPTH then error('nested too deep', 0) end
    local kind = type(value)
    if kind == 'nil' then return 'null' end
    if kind == 'boolean' then return value and 'true' or 'false' end
    if kind == 'number' then return encode_number(value) end
    if kind == 'string' then return encode_text(value) end
    if kind == 'table' then return encode_table(value, depth) end
    return '{"$x":"' .. kind .. '"}'
end

-- ---- the answerer --------------------------------------------------------------------------------------------------

local function answer(call, line)
    local values, _, count = list(line, 1)
    local before = {}
    for index = 1, count do before[index] = encode(values[index], 0) end
    local results = pack(call(unpack(values, 1, count)))
    if results.n > 1 then return '{"v":{"$t":' .. items(results, results.n, 0) .. '}}' end
    if results[1] ~= nil then return '{"v":' .. encode(results[1], 0) .. '}' end
    local changed = {}
    for index = 1, count do -- without a result, what it changed is one
        local text = encode(values[index], 0)
        if text ~= before[index] then changed[#changed + 1] = format('[%d,%s]', index - 1, text) end
    end
    return '{"v":null,"a":[' .. concat(changed, ',') .. ']}'
end

-- A function of a table, or a method where its first parameter is self: of what new makes, or else of the table.
local function member(class)
    local call, new = class[name], class.new
    if type(call) ~= 'function' or getlocal(call, 1) ~= 'self' then return call end
    return function(...)
        local object = class
        if type(new) == 'function' then object = getlocal(new, 1) == 'self' and new(class) or new() end
        return call(object, ...)
    end
end

-- The function of the completion's own scope, or of what it returns, or of the class Solution.
local function load_completion()
    local file = io.open('completion.lua', 'rb')
    local source = file:read('a')
    file:close()
    local chunk, fault = load(source .. '\nreturn ' .. (owner or name), '=main.lua')
    if not chunk then chunk, fault = load(source, '=main.lua') end
    if not chunk then error(fault, 0) end
    local result = chunk()
    if type(result) == 'function' then return result end
    local places = { result, globals[owner], not owner and globals or nil, globals.Solution }
    for index = 1, 4 do
        local call = type(places[index]) == 'table' and member(places[index])
        if type(call) == 'function' then return call end
    end
    error('there is no function ' .. name, 0)
end

local ok, call = pcall(load_completion)
if not ok then
    stdout:write(tostring(call), '\n')
    exit(1)
end
output:setvbuf('full')
for line in input.lines(input) do
    local answered, text = pcall(answer, call, line)
    if not answered then text = '{"e":' .. encode_text(tostring(text)) .. '}' end
    output:write(text, '\n')
end
output:flush()
exit(0)
