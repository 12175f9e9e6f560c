# bash completion of gatepost: /etc/bash_completion.d/gatepost, or: source <(gatepost completions bash)
_gatepost() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local typed='' words='' options='' skip='' word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $skip ]]; then skip=''; continue; fi
        case $word in
            @WITH_VALUE@) skip=yes ;;
            -*) ;;
            *) typed="${typed:+$typed }$word" ;;
        esac
    done
    if [[ -n $skip ]]; then
        case $previous in
            @WITH_PATH@) COMPREPLY=($(compgen -f -- "$current")) ;;
            *) COMPREPLY=() ;;
        esac
        return
    fi
@WORDS@
@OPTIONS@
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options @GENERAL@" -- "$current"))
        return
    fi
    case $typed in
        @OF_FILES@) COMPREPLY=($(compgen -f -- "$current")) ;;
        *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    esac
}
complete -o filenames -F _gatepost gatepost
