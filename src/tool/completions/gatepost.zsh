#compdef gatepost
# zsh completion of gatepost: as _gatepost in a directory of $fpath
_gatepost() {
    local typed='' skip='' word i
    local -a offered options
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ -n $skip ]]; then skip=''; continue; fi
        case $word in
            (@WITH_VALUE@) skip=yes ;;
            (-*) ;;
            (*) typed="${typed:+$typed }$word" ;;
        esac
    done
    if [[ -n $skip ]]; then
        case ${words[CURRENT-1]} in (@WITH_PATH@) _files ;; esac
        return
    fi
@WORDS@
@OPTIONS@
    if [[ ${words[CURRENT]} == -* ]]; then
        options+=(@GENERAL@)
        _describe -o 'option' options
        return
    fi
    case $typed in
        (@OF_FILES@) _files ;;
        (*) _describe 'command' offered ;;
    esac
}
_gatepost "$@"
