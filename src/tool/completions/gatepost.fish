# fish completion of gatepost: ~/.config/fish/completions/gatepost.fish
function __gatepost_typed
    set -l typed
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
            continue
        end
        switch $word
            case @WITH_VALUE@
                set skip yes
            case '-*'
            case '*'
                set -a typed $word
        end
    end
    echo "$typed"
end
function __gatepost_at
    test (__gatepost_typed) = "$argv"
end
function __gatepost_in
    string match -q -- "$argv*" (__gatepost_typed)
end
complete -c gatepost -f
@WORDS@
@OPTIONS@
@OF_FILES@
@GENERAL@
complete -c gatepost -l env-file -r -F -d 'file with settings'
complete -c gatepost -l help
complete -c gatepost -l version
