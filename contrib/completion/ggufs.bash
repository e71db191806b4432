# bash completion for ggufs(1) and ggufs-run(1), which print the candidates themselves

_ggufs()
{
    local -a words rest lines files
    local line=${COMP_LINE:0:COMP_POINT} word prefix='' candidate has_files=

    # Without -r, read undoes the shell's backslashes. COMP_WORDS would be cut at = and :.
    # shellcheck disable=SC2162
    read -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    # shellcheck disable=SC2162
    read -a rest <<<"${COMP_LINE:COMP_POINT}"
    words=("${words[@]/#\~\//$HOME/}")
    word=${words[-1]}
    # readline replaces only what follows the last = or :.
    [[ $COMP_WORDBREAKS == *=* && $word == *[=:]* ]] && prefix=${word%"${word##*[=:]}"}

    mapfile -t lines < <("${words[0]}" --complete $((${#words[@]} - 1)) "${words[@]:1}" "${rest[@]}" \
        2>/dev/null || echo $'\tfiles')
    COMPREPLY=()
    for line in "${lines[@]}"; do
        candidate=${line%%$'\t'*}
        if [[ -z $candidate ]]; then
            has_files=yes
        else
            COMPREPLY+=("${candidate#"$prefix"}")
            [[ $candidate == *[=/:] ]] && compopt -o nospace
        fi
    done
    if [[ $has_files ]]; then
        mapfile -t files < <(compgen -f -- "${word#"$prefix"}")
        ((${#files[@]} == 0)) || compopt -o filenames # which would quote the colon of a store
        COMPREPLY+=("${files[@]}")
    fi
}

complete -F _ggufs ggufs ggufs-run
