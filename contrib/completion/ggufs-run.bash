# bash completion for ggufs-run(1)

_ggufs_run()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

    COMPREPLY=()
    case $previous in
    -m | --model | -f | --file | --tokens | --logits | --perplexity)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        compopt -o filenames
        return
        ;;
    --cache-type)
        mapfile -t COMPREPLY < <(compgen -W 'f32 f16 q8_0' -- "$current")
        return
        ;;
    --draft-type)
        mapfile -t COMPREPLY < <(compgen -W 'lookup nextn all' -- "$current")
        return
        ;;
    --chat-template)
        mapfile -t COMPREPLY < <(compgen -W 'alpaca apertus bailing bailing-think
            bailing2 chatglm3 chatglm4 chatml command-r command-r7b deepseek
            deepseek-r1 deepseek2 deepseek3 dots1 ernie exaone-deep exaone-moe
            exaone3 exaone4 falcon3 gemma gigachat glmedge gpt-oss granite
            granite-code grok-2 hunyuan-dense hunyuan-moe hunyuan-vl kimi-k2 llama2
            llama2-sys llama2-sys-bos llama2-sys-strip llama3 llama4 megrez minicpm
            mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken
            monarch nemotron openchat orion pangu-embedded phi3 phi4 phi4-mini
            rwkv-world seed-oss smolvlm solar-open tulu vicuna vicuna-orca yandex
            zephyr' -- "$current")
        return
        ;;
    -o | --mount-option)
        mapfile -t COMPREPLY < <(compgen -W 'family= era= type= ik= offset= size= partial prefetch mlock nosandbox' \
            -- "$current")
        return
        ;;
    -p | --prompt | -n | --predict | --n-predict | -c | --ctx-size | -b | --batch-size | -t | --threads | \
        --draft | --draft-max | --temp | --top-k | --top-p | --min-p | --repeat-penalty | --repeat-last-n | -s | --seed | \
        -r | --stop | --reverse-prompt | --system | --bench)
        return
        ;;
    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-h --help -V --version -m --model -p --prompt -f --file -n --predict
            --n-predict -c --ctx-size -b --batch-size --draft --draft-max --draft-type -t --threads
            --cache-type --exact --no-warmup -o --mount-option --no-sandbox --temp --top-k --top-p --min-p --repeat-penalty --repeat-last-n -s --seed
            -r --stop --reverse-prompt --ignore-eos --no-bos --special --no-display-prompt
            --verbose-prompt -i --interactive --system --chat-template --tokenize --detokenize -0
            --null --tokens --logits --perplexity --bench --json' -- "$current")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames
}

complete -F _ggufs_run ggufs-run
