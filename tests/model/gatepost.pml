/* What Gatepost promises of codes, refresh tokens and endings (docs/security.md, "What ends what"),
 * for spin to check: `make model`. docs/evidence/model.md says what stands here and what does not.
 *
 * Each SQL statement is one step, or two where Postgres makes it two: at READ COMMITTED the joined
 * rows are those of the statement's beginning, and the row that it changes is the newest, waited
 * for. Then the commit waits for the standby, which is a step, and the answer to the client is
 * another. Between any two of them the process may die, the primary may restart, or the standby may
 * take its place.
 *
 * Two servers, one primary, one standby, one client with one user, up to two sign-ins of that user.
 * A "line" is what comes of one sign-in at this client: a code, its grant, the tokens of the grant.
 * Everybody is an attacker: whatever was handed out may be sent to either server at any time.
 */

/* --- How much happens in one run. tests/model/check has a row for each run. ------------------- */
#ifndef LINES
#define LINES 1        /* codes that are issued */
#endif
#ifndef GENERATIONS
#define GENERATIONS 0  /* how often a grant is moved on by a refresh */
#endif
#ifndef ENDINGS
#define ENDINGS 0      /* statements that draw an epoch; those that draw none come as often as they like */
#endif
#ifndef KINDS
#define KINDS 0        /* which endings, as a sum of the ENDS_ below */
#endif
/* -DNOBODY_ASKS: no introspection, so that the first thing that breaks is an answer. */
/* -DONE_SERVER: only one, beside whoever ends something. */
/* -DBEGINS_REDEEMED: the run begins with the tokens of the first code, which is not sent any more. */
#ifndef OFFLINE
#define OFFLINE 1      /* the grants have offline_access; without, they stand on their session, too */
#endif

#define ENDS_USER 1          /* store/users.rs REVOKE; a new password draws the same epoch */
#define ENDS_CLIENT 2        /* tool/statements/client_revocation.rs REVOKE_CLIENT, with registry_writer.rs BUMP */
#define ENDS_CONSENT 4       /* store/consents.rs WITHDRAW */
#define ENDS_INSTALLATION 8  /* store/installation.rs REVOKE_EVERYTHING */
#define ENDS_BY_DISABLING 16 /* registrar/statements/user_changes.rs UPDATE_USER; `user enable` may follow */
#define ENDS_SESSION 32      /* store/sessions.rs END */
#define ENDS_GRANT 64        /* store/grants.rs REVOKE: /connect/revocation, `grant revoke` */

/* The epochs that a code, a grant row and a session carry (protocol/words/epochs.rs). */
#define USER 0
#define CLIENT 1
#define CONSENT 2
#define INSTALLATION 3

/* --- What is taken out: each -D switch breaks one promise (tests/model/check). ---------------- */
/* -DWITHOUT_EPOCH=.. -DAT=.. leaves one comparison of an epoch out, at one place. */
#define IN_REDEEM 1
#define IN_MOVE_ON 2
#define IN_REFRESH 3
#define IN_LIVENESS 4
#define IN_SESSIONS 5
#ifdef WITHOUT_EPOCH
#define is_compared(place, kind) (!((kind) == WITHOUT_EPOCH && (place) == AT))
#else
#define is_compared(place, kind) true
#endif

/* -DWITHOUT_SESSION=.. : the statement at that place does not look at the session. */
#ifdef WITHOUT_SESSION
#define looks_at_session(place) ((place) != WITHOUT_SESSION)
#else
#define looks_at_session(place) true
#endif

/* --- The promises. Each is 0 for ever; its name is what spin prints when one is broken. ------- */
hidden byte promise_1_a_code_gives_tokens_once = 0;
hidden byte promise_2_a_replay_ends_the_line = 0;
hidden byte promise_3_what_ended_is_never_honoured = 0;
hidden byte promise_4_nothing_issued_after_an_ending_is_ended_by_it = 0;
hidden byte promise_5_a_repeated_refresh_gets_an_answer_that_works = 0;
hidden byte also_what_was_acknowledged_is_durable = 0;
#define promise(name, holds) assert(name || (holds))

/* Whether a statement is two steps. Where nothing ends, no other statement changes joined rows. */
#if KINDS || defined(SPLIT_REDEMPTION) || defined(SPLIT_REFRESH)
#define SNAPSHOTS 1
#else
#define SNAPSHOTS 0
#endif

/* A code takes the client's epoch from the registry that its process holds; a refresh does not. */
#if (KINDS & ENDS_CLIENT) && !(defined(BEGINS_REDEEMED) && LINES == 1)
#define REGISTRY 1
#else
#define REGISTRY 0
#endif

/* --- The database. ---------------------------------------------------------------------------- */
typedef Grant {
    bit is_there;
    bit revoked;         /* revoked_at IS NOT NULL */
    byte attempt;        /* whose statement wrote it: server + 1, or OTHERS once that request is over */
    byte generation;
    bit moved_just_now   /* moved_at > clock_timestamp() - :window */
};
#define OTHERS 9

typedef Rows {
    byte epoch[4];       /* users, clients, consents, installation */
    bit is_enabled;         /* users.enabled */
    byte registry_version;
    bit session_is_there[LINES];
    bit session_ended[LINES];
    Grant grants[LINES]
};

Rows primary;
Rows standby;      /* what the standby has received: an earlier state of the primary, never a mixture */
bit lags;          /* whether the primary has committed what the standby does not have */
#ifdef WITHOUT_FENCE
Rows left_behind;  /* an old primary that goes on answering reads */
bit is_left_behind;
#endif

/* One connection for each server, one for the commands. */
#define COMMANDS 2
#define NOTHING 0
#define RUNNING 1    /* a statement has begun; it holds its snapshot */
#define WAITING 2    /* it has committed, and waits for the standby */
#define CONFIRMED 3  /* the standby has it */
#define SEVERED 4    /* the primary is another one now: nobody here knows what became of it */
byte connection[3];

/* Random, so never drawn twice (`new_epoch()`). 0 is what everything begins at. */
byte drawn = 0;

/* --- What was handed out. --------------------------------------------------------------------- */
typedef Code {       /* sealed; the grant row copies its epochs */
    bit is_issued;
    byte epoch[4];
    byte session
};
Code codes[LINES];
byte begun = 0;               /* sign-ins */
byte handed_out[LINES];       /* refresh tokens: generations below this one are known to everybody */

#if REGISTRY
/* registry/mod.rs: the version that was polled; the client, with the version it was read at. */
byte polled_version[2];
byte held_version[2];
byte held_client_epoch[2];
bit has_heard[2];             /* ghost: polled since the client's epoch or the primary changed */
#endif

/* --- Ghosts: what an observer outside knows. -------------------------------------------------- */
byte is_over[LINES];       /* it is known to have ended: ACKNOWLEDGED, or a replay was answered: REPLAYED */
#define ACKNOWLEDGED 1
#define REPLAYED 2
bit session_is_over[LINES];
bit may_end[LINES];        /* something has happened that may end it: an ending, a replay, an error */
bit gave_tokens[LINES];    /* its code was answered with tokens */
byte presented[LINES];     /* how often its code was sent, up to 2 */
byte closed_below[LINES];  /* refresh tokens below this one may no longer be repeated */
byte replay_below[LINES];  /* whoever sends a refresh token below this one replays it */


/* --- Whether what a line was given still stands. ---------------------------------------------- */
#define is_as_it_was(rows, line, place, kind) \
    (!is_compared(place, kind) || rows.epoch[kind] == codes[line].epoch[kind])

/* The piece {stands} of store/pieces.sql; `grounds_stand` of protocol/token/liveness.rs. */
#define stands_in(rows, line, place) \
    (rows.is_enabled && is_as_it_was(rows, line, place, USER) && is_as_it_was(rows, line, place, CLIENT) && \
        is_as_it_was(rows, line, place, CONSENT) && is_as_it_was(rows, line, place, INSTALLATION))

#define session_stands_in(rows, of) (rows.session_is_there[of] && !rows.session_ended[of])

/* The piece {session goes on} of store/pieces.sql. */
#define session_goes_on_in(rows, line, place) \
    (OFFLINE || !looks_at_session(place) || session_stands_in(rows, codes[line].session))

/* store/tokens.rs FIND and `liveness::stands`, of an access token that names its grant. */
#define lives_in(rows, line) \
    (rows.grants[line].is_there && !rows.grants[line].revoked && stands_in(rows, line, IN_LIVENESS) && \
        (OFFLINE || session_stands_in(rows, codes[line].session)))

/* --- The primary and its standby. ------------------------------------------------------------- */
inline copy(to, from) {
    to.epoch[USER] = from.epoch[USER];
    to.epoch[CLIENT] = from.epoch[CLIENT];
    to.epoch[CONSENT] = from.epoch[CONSENT];
    to.epoch[INSTALLATION] = from.epoch[INSTALLATION];
    to.is_enabled = from.is_enabled;
    to.registry_version = from.registry_version;
    copy_line(to, from, 0);
#if LINES > 1
    copy_line(to, from, 1);
#endif
}

inline copy_line(to, from, l) {
    to.session_is_there[l] = from.session_is_there[l];
    to.session_ended[l] = from.session_ended[l];
    to.grants[l].is_there = from.grants[l].is_there;
    to.grants[l].revoked = from.grants[l].revoked;
    to.grants[l].attempt = from.grants[l].attempt;
    to.grants[l].generation = from.grants[l].generation;
    to.grants[l].moved_just_now = from.grants[l].moved_just_now;
}

inline confirm_connection(c) {
    if
    :: connection[c] == WAITING -> connection[c] = CONFIRMED
    :: else
    fi
}

inline sever_connection(c) {
    if
    :: connection[c] != NOTHING -> connection[c] = SEVERED
    :: else
    fi
}

/* A commit of this connection: it is in the primary's log, and its answer waits for the standby. */
inline commits(c) {
    lags = 1;
#ifdef WITHOUT_STANDBY_WAIT
    connection[c] = CONFIRMED;
#else
    connection[c] = WAITING;
#endif
}

inline window_closes(l) {
    primary.grants[l].moved_just_now = 0;
    standby.grants[l].moved_just_now = 0;
    if
    :: primary.grants[l].generation > closed_below[l] -> closed_below[l] = primary.grants[l].generation
    :: else
    fi;
    if
    :: handed_out[l] > replay_below[l] + 1 -> replay_below[l] = handed_out[l] - 1
    :: else
    fi
}

/* As often as they like: the standby receives what was committed; it becomes the primary, and what
 * it did not have is gone; the retry window of what was moved runs out. A restart of the primary
 * loses nothing but connections, which break anyhow: at `is_severed`. */
proctype Postgres() {
    do
    :: d_step { lags ->
            copy(standby, primary);
            lags = 0;
            confirm_connection(0);
            confirm_connection(1);
            confirm_connection(COMMANDS)
        }
    :: d_step { true ->
#ifdef WITHOUT_FENCE
            copy(left_behind, primary);
            is_left_behind = 1;
#endif
            copy(primary, standby);
            lags = 0;
#if REGISTRY
            has_heard[0] = 0;
            has_heard[1] = 0;
#endif
            sever_connection(0);
            sever_connection(1);
            sever_connection(COMMANDS)
        }
#if GENERATIONS
    :: d_step { true ->
            window_closes(0);
#if LINES > 1
            window_closes(1);
#endif
        }
#endif
    od
}

/* --- UserInfo, introspection: one read, judged. It begins and ends in one step, since a read that
 * began before an ending was acknowledged may say what was so then. ---------------------------- */
inline is_asked_about(l) {
    promise(promise_3_what_ended_is_never_honoured, !(is_over[l] == ACKNOWLEDGED && lives_in(primary, l)));
    promise(promise_2_a_replay_ends_the_line, !(is_over[l] == REPLAYED && lives_in(primary, l)));
#ifdef WITHOUT_FENCE
    promise(promise_3_what_ended_is_never_honoured, !(is_left_behind && is_over[l] == ACKNOWLEDGED && lives_in(left_behind, l)));
#endif
    promise(promise_4_nothing_issued_after_an_ending_is_ended_by_it, !(gave_tokens[l] && !may_end[l] && !lives_in(primary, l)));
    promise(also_what_was_acknowledged_is_durable, !(gave_tokens[l] && !primary.grants[l].is_there));
    promise(also_what_was_acknowledged_is_durable, !(handed_out[l] > primary.grants[l].generation + 1))
}

proctype Introspection() {
    do
    :: d_step { true ->
            is_asked_about(0);
#if LINES > 1
            is_asked_about(1)
#endif
        }
    od
}

/* --- The servers. ----------------------------------------------------------------------------- */
/* Another request's attempt is another number. */
inline forget_attempt(l) {
    if
    :: primary.grants[l].attempt == me + 1 -> primary.grants[l].attempt = OTHERS
    :: else
    fi;
    if
    :: standby.grants[l].attempt == me + 1 -> standby.grants[l].attempt = OTHERS
    :: else
    fi
}

inline request_is_over() {
    connection[me] = NOTHING;
    forget_attempt(0);
#if LINES > 1
    forget_attempt(1);
#endif
    line = 0;
    generation = 0;
    stands = 0;
    again = 0;
    after_the_end = 0;
    is_replay = 0;
    own = 0;
    issued = 0;
    at = 0
}

/* The registration that a request is judged by, with the client's epoch. */
inline takes_client(l) {
#if REGISTRY
    /* `Registry::client`: what is held counts if it was read at the version that was polled last. */
    if
    :: held_version[me] == polled_version[me]
    :: else ->
        held_version[me] = primary.registry_version;
        held_client_epoch[me] = primary.epoch[CLIENT]
    fi;
    codes[l].epoch[CLIENT] = held_client_epoch[me];
    /* The one exception: a process that has not heard of `client revoke` issues what is dead. */
    if
    :: !has_heard[me] || standby.epoch[CLIENT] != primary.epoch[CLIENT] -> may_end[l] = 1
    :: else
    fi;
#endif
#if !REGISTRY
    skip
#endif
}

/* A code is sealed: `Granted::respond` of endpoints/answer.rs, `issue::authorization_code`. What
 * was read before the standby had it may be gone after a failover: nobody was told of that ending. */
inline seal(l) {
    if
    :: standby.epoch[USER] != codes[l].epoch[USER] || standby.epoch[CONSENT] != codes[l].epoch[CONSENT] ||
          standby.epoch[INSTALLATION] != codes[l].epoch[INSTALLATION] || !standby.is_enabled -> may_end[l] = 1
    :: else
    fi;
    codes[l].is_issued = 1
}

proctype Server(byte me) {
    byte line = 0;
    byte generation = 0;    /* of the refresh token that was sent */
    bit stands = 0;         /* what the statement's snapshot said */
    bit again = 0;          /* `write_once_more`: the same attempt, on a fresh connection */
    byte after_the_end = 0; /* ghost: `is_over` when the request began */
    bit is_replay = 0;      /* ghost: what it sends had been used up when it began */
    bit own = 0;
    bit issued = 0;
    byte at = 0;            /* the row's generation, as REFRESH answers it */

idle:
    do
    :: atomic { begun < LINES && primary.is_enabled && (begun > 0 || me == 0) -> /* users::find_for_sign_in, and a right password */
            line = begun;
            begun++;
            codes[line].epoch[USER] = primary.epoch[USER];
            codes[line].epoch[CONSENT] = primary.epoch[CONSENT];
            codes[line].epoch[INSTALLATION] = primary.epoch[INSTALLATION];
            codes[line].session = line;
            takes_client(line);
            goto sign_in
        }
#if LINES > 1
    /* Single sign-on, in the session of the first: sessions::find, `FoundSession::stands`, and the
     * code; nothing is written. */
    :: atomic { begun == 1 && codes[0].is_issued && primary.is_enabled && session_stands_in(primary, 0) &&
               is_as_it_was(primary, 0, IN_SESSIONS, USER) && is_as_it_was(primary, 0, IN_SESSIONS, INSTALLATION) ->
            promise(promise_3_what_ended_is_never_honoured, !session_is_over[0]);
            begun++;
            codes[1].epoch[USER] = codes[0].epoch[USER];
            codes[1].epoch[INSTALLATION] = codes[0].epoch[INSTALLATION];
            codes[1].epoch[CONSENT] = primary.epoch[CONSENT];
            codes[1].session = 0;
            takes_client(1);
            seal(1)
        }
#endif
#if REGISTRY
    :: d_step { polled_version[me] != primary.registry_version || !has_heard[me] ->
            polled_version[me] = primary.registry_version; /* installation::READ, once a second */
            has_heard[me] = 1
        }
    :: d_step { held_version[me] != polled_version[me] -> /* `Registry::client`, for any request of this client */
            held_version[me] = primary.registry_version;
            held_client_epoch[me] = primary.epoch[CLIENT]
        }
#endif
#ifndef BEGINS_REDEEMED
    :: atomic { codes[0].is_issued -> line = 0; goto redeem }
#endif
#if LINES > 1
    :: atomic { codes[1].is_issued -> line = 1; goto redeem }
#endif
#if GENERATIONS
    :: atomic { handed_out[0] > 0 -> line = 0; goto refresh }
#if LINES > 1
    :: atomic { handed_out[1] > 0 -> line = 1; goto refresh }
#endif
#endif
    od;

/* A sign-in: store/sessions.rs INSERT, where the epochs still are those that were read. */
sign_in:
    atomic {
        if
#ifdef WITHOUT_EPOCH_READ
        :: true -> codes[line].epoch[USER] = primary.epoch[USER]; codes[line].epoch[INSTALLATION] = primary.epoch[INSTALLATION];
#else
        :: primary.epoch[USER] == codes[line].epoch[USER] && primary.epoch[INSTALLATION] == codes[line].epoch[INSTALLATION] ->
#endif
            primary.session_is_there[line] = 1;
            commits(me)
        :: else -> goto over /* the sign-in begins anew */
        fi
    }
    atomic {
        if
        :: connection[me] == CONFIRMED -> seal(line)
        :: true /* nobody hears of the session: as at `lost` */
        fi;
        goto over
    }

/* --- grant_type=authorization_code: endpoints/token/grants/authorization_code.rs -------------- */
redeem:
    atomic {
        after_the_end = is_over[line];
        is_replay = gave_tokens[line];
        if
        :: presented[line] < 2 -> presented[line]++
        :: else
        fi
    }
/* `standing` of store/grants.rs REDEEM */
redeem_begins:
    atomic {
        connection[me] = RUNNING;
        stands = stands_in(primary, line, IN_REDEEM) && session_stands_in(primary, codes[line].session);
#ifdef SPLIT_REDEMPTION
        own = !primary.grants[line].is_there; /* a statement looks, another enters */
#endif
#if SNAPSHOTS
    }
/* `redeemed`: INSERT .. ON CONFLICT (day, id) DO UPDATE. It locks the row in every case, so that
 * its commit waits for the standby in every case. */
    atomic {
#else
        ;
#endif
        if
        :: connection[me] == RUNNING
        :: true -> goto redeem_is_severed
        fi;
        if
#ifdef SPLIT_REDEMPTION
        :: own ->
#else
        :: !primary.grants[line].is_there ->
#endif
            primary.grants[line].is_there = 1;
            primary.grants[line].attempt = me + 1;
            own = 1;
            promise(promise_4_nothing_issued_after_an_ending_is_ended_by_it, stands || may_end[line]);
            if
            :: primary.grants[line].revoked = !stands
            :: primary.grants[line].revoked = 1; may_end[line] = 1 /* `CodeVerdict::Burn`: another code_verifier */
            fi
        :: else ->
            if
#ifndef WITHOUT_ATTEMPT
            :: primary.grants[line].attempt == me + 1 -> own = 1
            :: primary.grants[line].attempt != me + 1 ->
#else
            :: true ->
#endif
                own = 0;
                promise(promise_4_nothing_issued_after_an_ending_is_ended_by_it, presented[line] == 2);
                may_end[line] = 1;
#ifndef WITHOUT_REPLAY_OF_CODES
                primary.grants[line].revoked = 1
#endif
            fi
        fi;
        issued = own && !primary.grants[line].revoked;
        commits(me)
    }
    atomic {
        if
        :: connection[me] == CONFIRMED
#ifdef WITHOUT_WARNING
        :: connection[me] == WAITING /* the wait was cancelled, and the warning overlooked */
#endif
        :: true -> goto redeem_is_severed
        :: true -> goto lost
        fi;
/* The answer. */
        if
        :: issued ->
            promise(promise_1_a_code_gives_tokens_once, !gave_tokens[line]);
            promise(promise_3_what_ended_is_never_honoured, after_the_end != ACKNOWLEDGED);
            promise(promise_2_a_replay_ends_the_line, after_the_end != REPLAYED);
            gave_tokens[line] = 1;
#if GENERATIONS
            handed_out[line] = 1 /* generation 0 */
#endif
        :: else
        fi;
        if
        :: is_replay && is_over[line] == 0 -> is_over[line] = REPLAYED /* the replay was answered */
        :: else
        fi;
        goto over
    }
redeem_is_severed:
    atomic {
        if
        :: !again -> again = 1; goto redeem_begins
        :: again -> goto lost
        fi
    }

/* --- grant_type=refresh_token: endpoints/token/grants/refresh_token.rs ------------------------ */
#if GENERATIONS
refresh:
    atomic {
        do /* any that was handed out, but for the last, which stands for those that nobody sends */
        :: generation + 1 < handed_out[line] && generation + 1 < GENERATIONS -> generation++
        :: break
        od;
        after_the_end = is_over[line];
        is_replay = generation < replay_below[line];
        if
        :: generation > closed_below[line] -> closed_below[line] = generation
        :: else
        fi
    }
/* `standing` of store/grants.rs MOVE_ON or MOVE_ON_IN_SESSION, their joined rows */
move_on_begins:
    atomic {
        connection[me] = RUNNING;
        stands = stands_in(primary, line, IN_MOVE_ON) && session_goes_on_in(primary, line, IN_MOVE_ON);
#ifdef SPLIT_REFRESH
        own = primary.grants[line].generation == generation;
#endif
#if SNAPSHOTS
    }
/* Its update, of the row as it is now; `generation` and `revoked_at` are looked at again. */
    atomic {
#else
        ;
#endif
        if
        :: connection[me] == RUNNING
        :: true -> goto move_on_is_severed
        fi;
        if
#ifdef SPLIT_REFRESH
        :: stands && own && !primary.grants[line].revoked ->
            primary.grants[line].generation = generation + 1;
#else
        :: stands && primary.grants[line].generation == generation && !primary.grants[line].revoked ->
            primary.grants[line].generation++;
#endif
            primary.grants[line].moved_just_now = 1;
            primary.grants[line].attempt = me + 1;
            commits(me)
        :: else -> connection[me] = NOTHING; again = 0; goto find_grant
        fi
    }
    atomic {
        if
        :: connection[me] == CONFIRMED
#ifdef WITHOUT_WARNING
        :: connection[me] == WAITING
#endif
        :: true -> goto move_on_is_severed
        :: true -> goto lost
        fi;
        at = generation + 1;
        goto refreshed
    }
move_on_is_severed:
    atomic {
        if
        :: !again -> again = 1; goto move_on_begins
        :: again -> goto lost
        fi
    }
/* grants::find, and `judge` */
find_grant:
    atomic {
        if
        :: primary.grants[line].revoked -> /* GrantRevoked */
#ifdef CONFIRMS_REFUSALS
            commits(me); goto refused_once_confirmed
#else
            goto refused
#endif
        :: primary.grants[line].generation < generation -> goto refused /* UnknownRefreshToken */
        :: else /* `Refresh` or `OldToken` */
        fi
    }
/* `standing` of store/grants.rs REFRESH */
refresh_begins:
    atomic {
        connection[me] = RUNNING;
        stands = stands_in(primary, line, IN_REFRESH) && session_goes_on_in(primary, line, IN_REFRESH)
#if SNAPSHOTS
    }
/* `refreshed` */
    atomic {
#else
        ;
#endif
        if
        :: connection[me] == RUNNING
        :: true -> goto refresh_is_severed
        fi;
        if
        :: primary.grants[line].revoked
        :: !primary.grants[line].revoked && primary.grants[line].generation <= generation ->
            if
            :: stands && primary.grants[line].generation == generation ->
                primary.grants[line].generation++;
                primary.grants[line].moved_just_now = 1;
                primary.grants[line].attempt = me + 1
            :: else
            fi
        :: !primary.grants[line].revoked && primary.grants[line].generation > generation ->
            if
#ifdef WITHOUT_REPLAY_OF_REFRESH_TOKENS
            :: true
#else
#ifndef WITHOUT_WINDOW
            :: primary.grants[line].generation == generation + 1 &&
                  (primary.grants[line].attempt == me + 1 || primary.grants[line].moved_just_now)
#endif
            :: else ->
                promise(promise_5_a_repeated_refresh_gets_an_answer_that_works, generation < closed_below[line]);
                may_end[line] = 1;
                primary.grants[line].revoked = 1
#endif
            fi
        fi;
        at = primary.grants[line].generation;
        own = primary.grants[line].attempt == me + 1;
        issued = !primary.grants[line].revoked && stands && (own || at > generation);
        commits(me)
    }
    atomic {
        if
        :: connection[me] == CONFIRMED
#ifdef WITHOUT_WARNING
        :: connection[me] == WAITING
#endif
        :: true -> goto refresh_is_severed
        :: true -> goto lost
        fi;
        if
        :: issued -> goto refreshed
        :: else -> goto refused
        fi
    }
refresh_is_severed:
    atomic {
        if
        :: !again -> again = 1; goto refresh_begins
        :: again -> goto lost
        fi
    }
/* The answer, with the refresh token of generation `at`. */
refreshed:
    atomic {
        promise(promise_3_what_ended_is_never_honoured, after_the_end != ACKNOWLEDGED);
        promise(promise_2_a_replay_ends_the_line, after_the_end != REPLAYED);
        promise(promise_2_a_replay_ends_the_line, !is_replay);
        promise(promise_5_a_repeated_refresh_gets_an_answer_that_works, at == generation + 1 || generation < closed_below[line]);
        promise(promise_5_a_repeated_refresh_gets_an_answer_that_works, primary.grants[line].generation >= at);
        if
        :: handed_out[line] < at + 1 -> handed_out[line] = at + 1
        :: else
        fi;
        if
        :: generation > replay_below[line] -> replay_below[line] = generation
        :: else
        fi;
        goto over
    }
#ifdef CONFIRMS_REFUSALS
refused_once_confirmed:
    atomic {
        if
        :: connection[me] == CONFIRMED -> goto refused
        :: true -> goto lost
        fi
    }
#endif
refused:
    atomic {
        promise(promise_5_a_repeated_refresh_gets_an_answer_that_works, generation < closed_below[line] || may_end[line]);
#ifdef EVERY_REFUSAL_ENDS
        if
        :: is_replay && is_over[line] == 0 -> is_over[line] = REPLAYED
        :: else
        fi;
#else
        if
        :: is_replay && is_over[line] == 0 && connection[me] == CONFIRMED -> is_over[line] = REPLAYED /* RefreshTokenReplayed */
        :: else
        fi;
#endif
        goto over
    }
#endif

/* No answer, or 503: the process died; the client does not listen any more; the wait for the
 * standby was cancelled after 3 s; the connection broke twice. What was committed stays. A process
 * that dies forgets nothing that a living one may not forget, so another in its place is this one. */
lost:
over:
    atomic { request_is_over() }
    goto idle
}

/* --- Whoever ends something: a command, a page, /connect/revocation. -------------------------- */
#if KINDS
#ifdef COUNTED_EPOCHS
#define new_epoch(old) ((old) + 1)
#else
#define new_epoch(old) drawn
#endif
/* All that was read before this ending, and only that, may be ended by it. */
inline marks_all_before() {
    before = begun;
    may_end[0] = may_end[0] || begun > 0;
#if LINES > 1
    may_end[1] = may_end[1] || begun > 1;
#endif
}

inline are_over() {
    is_over[0] = (before > 0 -> ACKNOWLEDGED : is_over[0]);
#if LINES > 1
    is_over[1] = (before > 1 -> ACKNOWLEDGED : is_over[1]);
#endif
}

proctype Endings() {
    byte before = 0;  /* ghost: how many lines had begun when it committed */
    byte kind = 0;
    byte before_disabled = 0; /* ghost: how many lines that disabling ended which stands now */
    bit remembers_session = 0;  /* store/endings.rs `Confirmed` */
    bit remembers_grant = 0;
idle:
    do
#if KINDS & ENDS_USER
    :: atomic { drawn < ENDINGS -> kind = ENDS_USER; marks_all_before(); drawn++;
            primary.epoch[USER] = new_epoch(primary.epoch[USER]); commits(COMMANDS); goto waits }
#endif
#if KINDS & ENDS_CLIENT
    :: atomic { drawn < ENDINGS -> kind = ENDS_CLIENT; marks_all_before(); drawn++;
            primary.epoch[CLIENT] = new_epoch(primary.epoch[CLIENT]);
#if !REGISTRY || defined(WITHOUT_BUMP)
#elif defined(COUNTED_REGISTRY_VERSION)
            primary.registry_version++;
#else
            primary.registry_version = drawn;
#endif
#if REGISTRY
            has_heard[0] = 0; has_heard[1] = 0;
#endif
            commits(COMMANDS); goto waits }
#endif
#if KINDS & ENDS_CONSENT
    :: atomic { drawn < ENDINGS -> kind = ENDS_CONSENT; marks_all_before(); drawn++;
            primary.epoch[CONSENT] = new_epoch(primary.epoch[CONSENT]); commits(COMMANDS); goto waits }
#endif
#if KINDS & ENDS_INSTALLATION
    :: atomic { drawn < ENDINGS -> kind = ENDS_INSTALLATION; marks_all_before(); drawn++;
            primary.epoch[INSTALLATION] = new_epoch(primary.epoch[INSTALLATION]); commits(COMMANDS); goto waits }
#endif
#if KINDS & ENDS_BY_DISABLING
    :: atomic { drawn < ENDINGS && primary.is_enabled -> kind = ENDS_BY_DISABLING; marks_all_before(); drawn++; before_disabled = before;
            primary.is_enabled = 0;
#ifndef DISABLES_WITHOUT_EPOCH
            primary.epoch[USER] = new_epoch(primary.epoch[USER]);
#endif
            commits(COMMANDS); goto waits }
    :: atomic { !primary.is_enabled -> kind = ENDS_BY_DISABLING; before = before_disabled; connection[COMMANDS] = RUNNING; goto ended_before }
    :: atomic { !primary.is_enabled -> kind = 0; primary.is_enabled = 1; commits(COMMANDS); goto waits } /* `user enable` */
#endif
#if KINDS & ENDS_SESSION
    :: atomic { codes[0].is_issued && !primary.session_ended[0] -> kind = ENDS_SESSION; marks_all_before();
            primary.session_ended[0] = 1; commits(COMMANDS); goto waits }
    :: atomic { codes[0].is_issued && primary.session_ended[0] -> kind = ENDS_SESSION; before = begun; connection[COMMANDS] = RUNNING; goto ended_before }
#endif
#if KINDS & ENDS_GRANT
    :: atomic { gave_tokens[0] && !primary.grants[0].revoked -> kind = ENDS_GRANT; may_end[0] = 1; before = 1;
            primary.grants[0].revoked = 1; commits(COMMANDS); goto waits }
    :: atomic { gave_tokens[0] && primary.grants[0].revoked -> kind = ENDS_GRANT; before = 1; connection[COMMANDS] = RUNNING; goto ended_before }
#endif
    od;
/* `Store::end`, where it had ended before: store/endings.rs CONFIRM, unless it was seen confirmed;
 * on the same connection, so by the server that said so */
ended_before:
    atomic {
#ifdef WITHOUT_CONFIRM
        goto acknowledged
#else
        if
        :: (kind == ENDS_SESSION && remembers_session) || (kind == ENDS_GRANT && remembers_grant) -> goto acknowledged
#ifdef CONFIRMS_ELSEWHERE
        :: true -> commits(COMMANDS)
#else
        :: connection[COMMANDS] == RUNNING -> commits(COMMANDS)
#endif
        :: true -> goto is_done
        fi
#endif
    }
waits:
    atomic {
        if
        :: connection[COMMANDS] == CONFIRMED -> goto acknowledged
#ifdef WITHOUT_WARNING
        :: connection[COMMANDS] == WAITING -> goto acknowledged
#endif
        :: true -> goto is_done /* 503, or an error: nothing is said, and `write` does not repeat it */
        fi
    }
acknowledged:
    atomic {
        if
        :: kind == 0
        :: kind == ENDS_GRANT -> is_over[0] = ACKNOWLEDGED; remembers_grant = 1
        :: kind == ENDS_CLIENT || kind == ENDS_CONSENT -> are_over()
        :: kind == ENDS_SESSION ->
            is_over[0] = (before > 0 -> ACKNOWLEDGED : is_over[0]);
#if LINES > 1
            is_over[1] = (before > 1 && codes[1].session == 0 -> ACKNOWLEDGED : is_over[1]);
#endif
            session_is_over[0] = 1;
            remembers_session = 1
        :: kind == ENDS_USER || kind == ENDS_INSTALLATION || kind == ENDS_BY_DISABLING ->
            are_over();
            session_is_over[0] = session_is_over[0] || before > 0
        fi
    }
is_done:
    atomic {
        connection[COMMANDS] = NOTHING;
        before = 0;
        kind = 0
    }
    goto idle
}
#endif

init {
    atomic {
        primary.is_enabled = 1;
#ifdef BEGINS_REDEEMED
        begun = 1;
        codes[0].is_issued = 1;
        primary.session_is_there[0] = 1;
        primary.grants[0].is_there = 1;
        primary.grants[0].attempt = OTHERS;
        presented[0] = 1;
        gave_tokens[0] = 1;
        handed_out[0] = 1;
#endif
        copy(standby, primary);
#if REGISTRY
        has_heard[0] = 1;
        has_heard[1] = 1;
#endif
        run Postgres();
#ifndef NOBODY_ASKS
        run Introspection();
#endif
        run Server(0);
#ifndef ONE_SERVER
        run Server(1);
#endif
#if KINDS
        run Endings()
#endif
    }
}
