# bash completion for ggufs(1)

_ggufs()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

    COMPREPLY=()
    if [[ $previous == -o ]]; then
        # One -o takes several options, separated by commas.
        local before=
        [[ $current == *,* ]] && before=${current%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W 'set= unset= split= hf_shard= dtype= export= partial offset=
            size= family= era= type= ik= allow_other allow_root auto_unmount subdir= timeout= notify_fd=
            nonempty nosandbox prefetch mlock direct_io passthrough
            threads=
            uid= gid= umask= log= fsname= subtype= clone_fd max_read= max_threads= max_idle_threads=' -- "${current##*,}")
        compopt -o nospace
        return
    fi
    if [[ $current == -* && $previous != --@(edits|imatrix|svg) ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-h --help -V --version --info --list --cat --extract --stats --diff
            --imatrix --svg --json --force --check --status --data --set --unset --edits -f -d -s -q -v -o' -- "$current")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames
}

complete -F _ggufs ggufs
