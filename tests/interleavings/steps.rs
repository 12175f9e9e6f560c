//! What can happen next in a world, and what it leaves.

use crate::judges::{Court, Given, Question, Verdict};
use crate::statements::{self, EpochsHeld, GrantRow, Moved, RedemptionAnswer, RefreshAnswer, Sent};
use crate::world::{
    Answer, Cast, Code, Crash, Ending, GrantScope, LINES, Over, Promise, REQUESTS, Request,
    Running, SessionRow, Stage, Statement, Step, World, keep,
};

/// Everything that can happen next.
pub fn steps(world: &World) -> Vec<Step> {
    let mut steps = Vec::new();
    if world.came < REQUESTS {
        steps.extend(requests(world).into_iter().map(Step::Comes));
    }
    for running in world.running.iter().flatten() {
        match running.stage {
            Stage::Committed {
                is_received: false, ..
            } => {}
            _ => steps.push(Step::GoesOn(running.number)),
        }
    }
    let rows = [world.primary, world.standby];
    let moved = rows.iter().flat_map(|rows| rows.grants).flatten();
    if !world.is_later && moved.into_iter().any(|row| row.moved == Moved::JustNow) {
        steps.push(Step::TimePasses);
    }
    if world.crash == Crash::ToCome {
        if world.primary != world.standby || world.running.iter().flatten().any(is_waiting) {
            steps.push(Step::StandbyReceives);
        }
        steps.push(Step::FailsOver);
        let severed = world
            .running
            .iter()
            .flatten()
            .filter(|running| is_severed(running));
        steps.extend(severed.map(|running| Step::Breaks(running.number)));
    }
    steps
}

/// Everything that somebody could send.
fn requests(world: &World) -> Vec<Request> {
    let mut requests = Vec::new();
    let is_whole = world.cast == Cast::Whole;
    let in_session = is_whole || world.scope == GrantScope::Online;
    for (number, line) in (0..).zip(world.lines) {
        let redeem = |is_right| Request::Redeem {
            line: number,
            is_right,
        };
        if line.code.is_some() {
            requests.push(redeem(true));
        }
        if line.code.is_some() && is_whole {
            requests.push(redeem(false));
        }
        for generation in 0..line.handed_out {
            // Of an older token, `MOVE_ON` finds nothing, and the grant is read.
            let is_newest = generation + 1 == line.handed_out;
            let ways = if is_newest {
                &[true, false][..]
            } else {
                &[false]
            };
            requests.extend(ways.iter().map(|names_scope| Request::Refresh {
                line: number,
                generation,
                names_scope: *names_scope,
            }));
        }
    }
    if !world.lines[1].has_begun && in_session {
        requests.push(Request::SingleSignOn);
    }
    if !world.lines[1].has_begun && is_whole {
        requests.push(Request::SignIn);
    }
    requests.push(Request::End(Ending::User));
    if in_session {
        requests.extend([Ending::Consent, Ending::Session].map(Request::End));
    }
    if is_whole {
        requests.extend([Ending::Client, Ending::Installation].map(Request::End));
    }
    if world.lines[0].gave_tokens {
        requests.push(Request::End(Ending::Grant));
    }
    requests
}

fn is_waiting(running: &Running) -> bool {
    matches!(
        running.stage,
        Stage::Committed {
            is_received: false,
            ..
        }
    )
}

/// Whether it notices that its connection breaks: another one gives no answer.
fn is_severed(running: &Running) -> bool {
    match running.stage {
        Stage::Begun { .. } => true,
        Stage::Committed { statement, .. } => statement.is_repeated(),
        Stage::Sends(_) | Stage::Finds => false,
    }
}

/// The world after a step, or the promise that is broken in it.
pub fn take(world: &World, step: Step, court: &Court<'_>) -> Result<World, Promise> {
    let mut next = Next {
        world: *world,
        court,
    };
    match step {
        Step::Comes(request) => next.comes(request)?,
        Step::GoesOn(number) => {
            let running = next.taken(number);
            next.goes_on(running)?;
        }
        Step::StandbyReceives => next.receives(),
        Step::TimePasses => next.passes_time(),
        Step::FailsOver => {
            next.world.primary = next.world.standby;
            let running = next
                .world
                .running
                .iter()
                .flatten()
                .filter(|one| is_connected(one));
            let severed: Vec<u8> = running.map(|running| running.number).collect();
            severed
                .into_iter()
                .for_each(|number| next.is_severed(number));
            next.world.crash = Crash::Past;
        }
        Step::Breaks(number) => {
            next.is_severed(number);
            next.receives();
            next.world.crash = Crash::Past;
        }
    }
    Ok(next.world)
}

fn is_connected(running: &Running) -> bool {
    matches!(running.stage, Stage::Begun { .. } | Stage::Committed { .. })
}

/// Introspection, which may come at any moment: one read, judged.
pub fn ask(world: &World, court: &Court<'_>) -> Result<(), Promise> {
    let asked = Next {
        world: *world,
        court,
    };
    (0..)
        .take(LINES)
        .try_for_each(|line| asked.is_asked_about(line))
}

struct Next<'a> {
    world: World,
    court: &'a Court<'a>,
}

impl Next<'_> {
    fn code(&self, line: u8) -> Code {
        self.world.lines[usize::from(line)].code.unwrap()
    }

    /// A grant of that line, and what it stands on now.
    fn given(&self, line: u8, row: Option<GrantRow>) -> Given {
        let code = self.code(line);
        let rows = &self.world.primary;
        Given {
            scope: self.world.scope,
            at: row.map_or(code.epochs, |row| row.epochs),
            now: rows.epochs,
            generation: row.map_or(0, |row| row.generation),
            revoked: row.is_some_and(|row| row.revoked),
            session: rows.sessions[usize::from(code.session)],
            in_session: self.world.scope == GrantScope::Online,
            is_bound: self.world.is_bound,
            is_later: self.world.is_later,
        }
    }

    /// `{stands}`, and the session where the statement looks at that, too.
    fn stands(&self, line: u8, in_session: bool) -> bool {
        let given = Given {
            in_session,
            ..self.given(line, None)
        };
        self.court.says(Question::Stands(given))
    }

    // --- Requests.

    fn comes(&mut self, request: Request) -> Result<(), Promise> {
        self.world.came += 1;
        let mut running = Running {
            number: self.world.came,
            request,
            stage: Stage::Finds,
            over_before: Over::No,
            is_replay: false,
            lines_before: 0,
        };
        match request {
            Request::Redeem { line, is_right } => {
                let known = &mut self.world.lines[usize::from(line)];
                running.over_before = known.over;
                running.is_replay = known.gave_tokens;
                known.presented = 2.min(known.presented + 1);
                let burn = !self.court.says(Question::Code { is_right });
                running.stage = Stage::Sends(Statement::Redeem { burn });
            }
            Request::Refresh {
                line,
                generation,
                names_scope,
            } => {
                let known = &mut self.world.lines[usize::from(line)];
                running.over_before = known.over;
                running.is_replay = generation < known.replay_below;
                known.closed_below = known.closed_below.max(generation);
                if self.court.says(Question::IsTriedAtOnce { names_scope }) {
                    running.stage = Stage::Sends(Statement::MoveOn);
                }
            }
            Request::SignIn => {
                self.world.lines[1].has_begun = true;
                let epochs = self.world.primary.epochs;
                running.stage = Stage::Sends(Statement::Insert { epochs });
                return self.stays(running);
            }
            Request::SingleSignOn => return self.signs_on(),
            Request::End(_) => running.stage = Stage::Sends(Statement::End),
        }
        // What it has come for is done in the same step: nothing but this request knows that it is
        // here.
        self.goes_on(running)
    }

    fn goes_on(&mut self, running: Running) -> Result<(), Promise> {
        match running.stage {
            Stage::Sends(statement) => self.sends(running, statement),
            Stage::Begun { statement, stands } => self.is_its_turn(running, statement, stands),
            Stage::Finds => self.finds(running),
            Stage::Committed { answer, .. } => self.answers(running, answer),
        }
    }

    fn sends(&mut self, mut running: Running, statement: Statement) -> Result<(), Promise> {
        match (statement, running.request) {
            (Statement::Redeem { .. }, Request::Redeem { line, .. }) => {
                let stands = self.stands(line, true);
                running.stage = Stage::Begun { statement, stands };
                self.stays(running)
            }
            (Statement::MoveOn | Statement::Refresh, Request::Refresh { line, .. }) => {
                let stands = self.stands(line, false);
                running.stage = Stage::Begun { statement, stands };
                self.stays(running)
            }
            (Statement::Revoke, Request::Refresh { line, .. }) => {
                let line = usize::from(line);
                // What had ended before is confirmed on the same connection.
                let has_ended = statements::revoke(&mut self.world.primary.grants[line]);
                self.world.lines[line].may_end |= has_ended;
                self.commits(running, statement, Answer::Refused)
            }
            (Statement::Insert { epochs }, _) => {
                let now = self.world.primary.epochs;
                if (now.user, now.installation) != (epochs.user, epochs.installation) {
                    return Ok(()); // The sign-in begins anew.
                }
                self.world.primary.sessions[1] = SessionRow::Begun;
                self.commits(running, statement, Answer::SignedIn { epochs })
            }
            (Statement::End, Request::End(ending)) => {
                running.lines_before = 1 + u8::from(self.world.lines[1].has_begun);
                self.ends(ending, running.number);
                self.commits(running, statement, Answer::Ended)
            }
            (_, request) => unreachable!("{request:?} sends {statement:?}"),
        }
    }

    /// The row that a statement changes is the newest: it waits for that.
    fn is_its_turn(
        &mut self,
        mut running: Running,
        statement: Statement,
        stands: bool,
    ) -> Result<(), Promise> {
        let sent = Sent {
            attempt: running.number,
            stands,
        };
        match (statement, running.request) {
            (Statement::Redeem { burn }, Request::Redeem { line, .. }) => {
                let answer = self.redeems(line, burn, sent)?;
                self.commits(running, statement, Answer::Redeemed(answer))
            }
            (
                Statement::MoveOn,
                Request::Refresh {
                    line, generation, ..
                },
            ) => match self.moves_on(line, generation, sent) {
                Some(answer) => self.commits(running, statement, answer),
                None => {
                    running.stage = Stage::Finds;
                    self.stays(running)
                }
            },
            (
                Statement::Refresh,
                Request::Refresh {
                    line, generation, ..
                },
            ) => {
                let answer = self.refreshes(line, generation, sent)?;
                self.commits(running, statement, answer)
            }
            (_, request) => unreachable!("{request:?} sends {statement:?}"),
        }
    }

    fn redeems(&mut self, line: u8, burn: bool, sent: Sent) -> Result<RedemptionAnswer, Promise> {
        let epochs = self.code(line).epochs;
        let row = &mut self.world.primary.grants[usize::from(line)];
        let before = *row;
        let answer = (self.court.judges.redeem)(row, epochs, burn, sent);
        let known = &mut self.world.lines[usize::from(line)];
        match before {
            None => {
                let kept = sent.stands || known.may_end;
                known.may_end |= burn;
                keep(Promise::NothingIssuedAfterAnEndingIsEndedByIt, kept)?;
            }
            Some(row) if row.attempt != sent.attempt => {
                known.may_end = true;
                let kept = known.presented == 2;
                keep(Promise::NothingIssuedAfterAnEndingIsEndedByIt, kept)?;
            }
            Some(_) => {}
        }
        Ok(answer)
    }

    /// What is answered where it moved the grant.
    fn moves_on(&mut self, line: u8, generation: u8, sent: Sent) -> Option<Answer> {
        let index = usize::from(line);
        let before = self.world.primary.grants[index];
        let is_within = self.court.says(Question::IsWithin);
        let row = &mut self.world.primary.grants[index];
        if !statements::move_on(row, generation, is_within, sent) {
            return None;
        }
        // As if the row that came back had been read first.
        let verdict = self.court.verdict(Question::Refresh {
            given: self.given(line, before),
            generation,
            names_scope: false,
        });
        Some(match verdict {
            Verdict::Yes => Answer::Refreshed {
                generation: generation + 1,
            },
            Verdict::No | Verdict::Revoked | Verdict::OldToken => Answer::Refused,
        })
    }

    fn refreshes(&mut self, line: u8, generation: u8, sent: Sent) -> Result<Answer, Promise> {
        let row = &mut self.world.primary.grants[usize::from(line)];
        let was_revoked = row.is_some_and(|row| row.revoked);
        let answer = statements::refresh(row, generation, sent);
        if !was_revoked && row.is_some_and(|row| row.revoked) {
            let known = &mut self.world.lines[usize::from(line)];
            known.may_end = true;
            let kept = generation < known.closed_below;
            keep(Promise::ARepeatedRefreshGetsAnAnswerThatWorks, kept)?;
        }
        Ok(match answer {
            Some(RefreshAnswer::Issued { generation }) => Answer::Refreshed { generation },
            Some(RefreshAnswer::Revoked | RefreshAnswer::NoLongerStands) | None => Answer::Refused,
        })
    }

    fn finds(&mut self, mut running: Running) -> Result<(), Promise> {
        let Request::Refresh {
            line,
            generation,
            names_scope,
        } = running.request
        else {
            unreachable!("{running:?}");
        };
        let row = self.world.primary.grants[usize::from(line)];
        let verdict = self.court.verdict(Question::Refresh {
            given: self.given(line, row),
            generation,
            names_scope,
        });
        running.stage = match verdict {
            Verdict::Revoked => Stage::Sends(Statement::Revoke),
            Verdict::No => return self.answers(running, Answer::Refused),
            Verdict::Yes | Verdict::OldToken => Stage::Sends(Statement::Refresh),
        };
        self.stays(running)
    }

    /// One read, judged; nothing is written.
    fn signs_on(&mut self) -> Result<(), Promise> {
        let rows = self.world.primary;
        let question = Question::Session {
            now: rows.epochs,
            row: rows.sessions[0],
        };
        if !self.court.says(question) {
            let kept = self.world.session_may_end;
            return keep(Promise::NothingIssuedAfterAnEndingIsEndedByIt, kept);
        }
        keep(
            Promise::WhatEndedIsNeverHonoured,
            !self.world.session_is_over,
        )?;
        self.world.lines[1].has_begun = true;
        let epochs = EpochsHeld {
            installation: 0,
            user: 0,
            ..rows.epochs
        };
        self.seals(epochs, 0);
        Ok(())
    }

    /// A code of the second line. Where the standby has other epochs than were read, nobody was
    /// told of that ending, and it may be lost; then what was given on it is dead, which is the
    /// safe side.
    fn seals(&mut self, epochs: EpochsHeld, session: u8) {
        let line = &mut self.world.lines[1];
        line.code = Some(Code { epochs, session });
        line.may_end |= self.world.standby.epochs != epochs;
    }

    fn ends(&mut self, ending: Ending, number: u8) {
        let rows = &mut self.world.primary;
        let epochs = &mut rows.epochs;
        match ending {
            Ending::User => epochs.user = number,
            Ending::Client => epochs.client = number,
            Ending::Consent => epochs.consent = number,
            Ending::Installation => epochs.installation = number,
            Ending::Session => rows.sessions[0] = SessionRow::Ended,
            Ending::Grant => {
                statements::revoke(&mut rows.grants[0]);
                self.world.lines[0].may_end = true;
                return;
            }
        }
        for line in self.world.lines.iter_mut().filter(|line| line.has_begun) {
            line.may_end = true;
        }
        self.world.session_may_end |= !matches!(ending, Ending::Client | Ending::Consent);
    }

    // --- Answers.

    fn answers(&mut self, running: Running, answer: Answer) -> Result<(), Promise> {
        self.forgets(running.number);
        match (answer, running.request) {
            (Answer::Redeemed(answer), Request::Redeem { line, is_right }) => {
                if answer == RedemptionAnswer::Issued {
                    keep(Promise::OnlyTheRightVerifierGetsTokens, is_right)?;
                    let once = !self.world.lines[usize::from(line)].gave_tokens;
                    keep(Promise::ACodeGivesTokensOnce, once)?;
                    self.gives(running)?;
                    let known = &mut self.world.lines[usize::from(line)];
                    known.gave_tokens = true;
                    if self.world.scope == GrantScope::Offline {
                        known.handed_out = known.handed_out.max(1);
                    }
                }
                self.tells_replay(running, line);
            }
            (
                Answer::Refreshed { generation: next },
                Request::Refresh {
                    line, generation, ..
                },
            ) => {
                self.gives(running)?;
                keep(Promise::AReplayEndsTheLine, !running.is_replay)?;
                let index = usize::from(line);
                let known = &mut self.world.lines[index];
                let is_successor = next == generation + 1 || generation < known.closed_below;
                let row = self.world.primary.grants[index];
                let works = row.is_some_and(|row| row.generation >= next);
                known.handed_out = known.handed_out.max(next + 1);
                known.replay_below = known.replay_below.max(generation);
                keep(
                    Promise::ARepeatedRefreshGetsAnAnswerThatWorks,
                    is_successor && works,
                )?;
            }
            (
                Answer::Refused,
                Request::Refresh {
                    line, generation, ..
                },
            ) => {
                let known = self.world.lines[usize::from(line)];
                let kept = generation < known.closed_below || known.may_end;
                keep(Promise::ARepeatedRefreshGetsAnAnswerThatWorks, kept)?;
                self.tells_replay(running, line);
            }
            (Answer::SignedIn { epochs }, _) => self.seals(epochs, 1),
            (Answer::Ended, Request::End(ending)) => {
                self.acknowledges(ending, running.lines_before)
            }
            (answer, request) => unreachable!("{request:?} is answered {answer:?}"),
        }
        Ok(())
    }

    fn gives(&self, running: Running) -> Result<(), Promise> {
        let over = running.over_before;
        keep(
            Promise::WhatEndedIsNeverHonoured,
            over != Over::Acknowledged,
        )?;
        keep(Promise::AReplayEndsTheLine, over != Over::Replayed)
    }

    fn tells_replay(&mut self, running: Running, line: u8) {
        let over = &mut self.world.lines[usize::from(line)].over;
        if running.is_replay && *over == Over::No {
            *over = Over::Replayed;
        }
    }

    fn acknowledges(&mut self, ending: Ending, lines_before: u8) {
        let scope = self.world.scope;
        for (number, line) in self.world.lines.iter_mut().enumerate() {
            let in_session = line.code.is_some_and(|code| code.session == 0);
            let is_its = match ending {
                Ending::Grant => number == 0,
                Ending::Session => in_session && scope == GrantScope::Online,
                Ending::User | Ending::Client | Ending::Consent | Ending::Installation => true,
            };
            if is_its && number < usize::from(lines_before) {
                line.over = Over::Acknowledged;
            }
        }
        let spares = matches!(ending, Ending::Grant | Ending::Client | Ending::Consent);
        self.world.session_is_over |= !spares;
    }

    // --- The primary and its standby.

    fn commits(
        &mut self,
        mut running: Running,
        statement: Statement,
        answer: Answer,
    ) -> Result<(), Promise> {
        running.stage = Stage::Committed {
            statement,
            answer,
            is_received: false,
        };
        self.stays(running)?;
        if self.world.crash == Crash::Past {
            self.receives(); // No failover comes that could tell the two apart.
        }
        Ok(())
    }

    fn receives(&mut self) {
        self.world.standby = self.world.primary;
        for running in self.world.running.iter_mut().flatten() {
            if let Stage::Committed { is_received, .. } = &mut running.stage {
                *is_received = true;
            }
        }
    }

    fn passes_time(&mut self) {
        self.world.is_later = true;
        for rows in [&mut self.world.primary, &mut self.world.standby] {
            for row in rows.grants.iter_mut().flatten() {
                if row.moved == Moved::JustNow {
                    row.moved = Moved::LongAgo;
                }
            }
        }
        for (line, row) in self.world.lines.iter_mut().zip(self.world.primary.grants) {
            line.closed_below = line.closed_below.max(row.map_or(0, |row| row.generation));
            line.replay_below = line.replay_below.max(line.handed_out.saturating_sub(1));
        }
    }

    /// It sends its statement once more, or gives no answer.
    fn is_severed(&mut self, number: u8) {
        let mut running = self.taken(number);
        match running.stage {
            Stage::Begun { statement, .. } | Stage::Committed { statement, .. }
                if statement.is_repeated() =>
            {
                running.stage = Stage::Sends(statement);
                let free = self.world.running.iter_mut().find(|place| place.is_none());
                *free.unwrap() = Some(running);
                self.world
                    .running
                    .sort_by_key(|place| place.map_or(u8::MAX, |one| one.number));
            }
            _ => self.forgets(number),
        }
    }

    fn taken(&mut self, number: u8) -> Running {
        let mut places = self.world.running.iter_mut();
        let place = places.find(|place| place.is_some_and(|running| running.number == number));
        let running = place.unwrap().take().unwrap();
        self.in_order();
        running
    }

    fn stays(&mut self, running: Running) -> Result<(), Promise> {
        let free = self.world.running.iter_mut().find(|place| place.is_none());
        *free.unwrap() = Some(running);
        self.in_order();
        Ok(())
    }

    fn in_order(&mut self) {
        let running = &mut self.world.running;
        running.sort_by_key(|place| place.map_or(u8::MAX, |running| running.number));
    }

    /// Of a request that is over, nobody knows the attempt.
    fn forgets(&mut self, number: u8) {
        for rows in [&mut self.world.primary, &mut self.world.standby] {
            for row in rows.grants.iter_mut().flatten() {
                if row.attempt == number {
                    row.attempt = 0;
                }
            }
        }
    }

    fn is_asked_about(&self, number: u8) -> Result<(), Promise> {
        let index = usize::from(number);
        let line = self.world.lines[index];
        let rows = &self.world.primary;
        let durable = Promise::WhatWasAcknowledgedIsDurable;
        let Some(row) = rows.grants[index] else {
            return keep(durable, !line.gave_tokens);
        };
        keep(durable, line.handed_out <= row.generation + 1)?;
        let offline = self.world.scope == GrantScope::Offline;
        let given = self.given(number, Some(row));
        let access = self.court.says(Question::AccessToken(given));
        let refresh = offline && self.court.says(Question::RefreshToken(given));
        let honoured = access || refresh;
        keep(
            Promise::WhatEndedIsNeverHonoured,
            line.over != Over::Acknowledged || !honoured,
        )?;
        keep(
            Promise::AReplayEndsTheLine,
            line.over != Over::Replayed || !honoured,
        )?;
        let lives = access && (refresh || !offline);
        let kept = !line.gave_tokens || line.may_end || lives;
        keep(Promise::NothingIssuedAfterAnEndingIsEndedByIt, kept)
    }
}
