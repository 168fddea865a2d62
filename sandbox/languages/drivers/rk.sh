# Calls of a function of Bash, which is given words and prints its value: an answer is the text that it printed.

rewardkit_answer() {
    local text code hex letter
    text=$("$@" </dev/null) || : # as a command's value it is what is printed, whatever the status
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    if [[ $text == *[[:cntrl:]]* ]]; then
        for code in {1..31}; do
            builtin printf -v hex '%02x' "$code"
            builtin printf -v letter "\\x$hex"
            text=${text//"$letter"/\\u00$hex}
        done
    fi
    builtin printf '{"v":"%s"}\n' "$text" >&4
}
