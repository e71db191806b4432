# bash completion for ggufs(1)

_ggufs()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

    COMPREPLY=()
    if [[ $previous == -o ]]; then
        # Several options can stand behind one -o, with commas.
        local before=
        [[ $current == *,* ]] && before=${current%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W 'set= unset= split= allow_other allow_root
            auto_unmount nonempty nosandbox partial family= era= prefetch mlock direct_io threads=
            uid= gid= umask= fsname= subtype= clone_fd max_read= max_threads= max_idle_threads=' \
            -- "${current##*,}")
        compopt -o nospace
        return
    fi
    if [[ $current == -* && $previous != --edits ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-h --help -V --version --check --data -f -d -s --edits
            -o' -- "$current")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames
}

complete -F _ggufs ggufs
