//! The line of those who wait to have a password looked at, and who has the next turn.
//!
//! Strangers wait by source, and sources have turns one after the other: many requests of one
//! source take no more turns than a single request of another. Whom a browser vouches for (see
//! `endpoints/login/known_browser.rs`) waits by account instead, in places that strangers cannot
//! fill. Each account has one at a time, so that a stolen cookie is worth no more. Where both wait,
//! they have every second turn.

/// A keyed hash of an account.
pub type AccountHash = [u8; 32];

/// What somebody in the line is known by. No two get the same.
pub type Number = u64;

#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// How many have their turn at once.
    pub at_once: usize,
    /// How many strangers may wait.
    pub strangers: usize,
    /// How many accounts may wait.
    pub accounts: usize,
}

#[derive(Debug)]
pub struct PasswordLine<S> {
    limits: LineLimits,
    latest: Number,
    /// In each round every source that waits has one turn. This is the round of the stranger who
    /// was called last.
    round: u64,
    waiting: Vec<PersonInLine<S>>,
    /// Those who have their turn.
    served: Vec<PersonInLine<S>>,
    stranger_is_next: bool,
}

#[derive(Debug)]
struct PersonInLine<S> {
    number: Number,
    /// `None` for a stranger.
    account: Option<AccountHash>,
    source: S,
    /// Of a stranger: the round after that of the latest request from the same source.
    round: u64,
}

impl<S: PartialEq> PasswordLine<S> {
    pub fn new(limits: LineLimits) -> PasswordLine<S> {
        PasswordLine {
            limits,
            latest: 0,
            round: 0,
            waiting: Vec::new(),
            served: Vec::new(),
            stranger_is_next: false,
        }
    }

    /// Takes somebody in and gives them a number. In a full line the stranger whose turn would be
    /// the last gives way: most often the newcomer, otherwise the latest of a source with more
    /// requests. They neither wait nor have a turn.
    pub fn enter(&mut self, account: Option<AccountHash>, source: S) -> Number {
        self.latest += 1;
        let number = self.latest;
        let account = account.filter(|one| self.has_place_for(one));
        let of_source = self
            .strangers()
            .filter(|stranger| stranger.source == source);
        let round = of_source
            .map(|stranger| stranger.round)
            .max()
            .unwrap_or(self.round)
            + 1;
        self.waiting.push(PersonInLine {
            number,
            account,
            source,
            round,
        });
        self.call();
        if self.strangers().count() > self.limits.strangers {
            let last = self
                .strangers()
                .max_by_key(|stranger| (stranger.round, stranger.number));
            let last = last.map(|stranger| stranger.number);
            self.waiting.retain(|visitor| Some(visitor.number) != last);
        }
        number
    }

    pub fn has_turn(&self, number: Number) -> bool {
        self.served.iter().any(|visitor| visitor.number == number)
    }

    pub fn is_waiting(&self, number: Number) -> bool {
        self.waiting.iter().any(|visitor| visitor.number == number)
    }

    /// Lets somebody go, whether they wait or have their turn.
    pub fn leave(&mut self, number: Number) {
        self.waiting.retain(|visitor| visitor.number != number);
        self.served.retain(|visitor| visitor.number != number);
        self.call();
    }

    /// How many more strangers may wait.
    pub fn room(&self) -> usize {
        self.limits
            .strangers
            .saturating_sub(self.strangers().count())
    }

    fn strangers(&self) -> impl Iterator<Item = &PersonInLine<S>> {
        self.waiting
            .iter()
            .filter(|visitor| visitor.account.is_none())
    }

    fn has_place_for(&self, account: &AccountHash) -> bool {
        let waiting = self.waiting.len() - self.strangers().count();
        let mut all = self.waiting.iter().chain(&self.served);
        waiting < self.limits.accounts
            && all.all(|visitor| visitor.account.as_ref() != Some(account))
    }

    fn call(&mut self) {
        while self.served.len() < self.limits.at_once {
            let next = self
                .first(self.stranger_is_next)
                .or_else(|| self.first(!self.stranger_is_next));
            let Some(next) = next else { return };
            let visitor = self.waiting.remove(next);
            self.stranger_is_next = visitor.account.is_some();
            if visitor.account.is_none() {
                self.round = visitor.round;
            }
            self.served.push(visitor);
        }
    }

    /// The position in `waiting` of whoever is next: the stranger of the lowest round, or the
    /// account that came first.
    fn first(&self, is_stranger: bool) -> Option<usize> {
        let all = self.waiting.iter().enumerate();
        let of_kind = all.filter(|(_, visitor)| visitor.account.is_none() == is_stranger);
        let order = |visitor: &PersonInLine<S>| if is_stranger { visitor.round } else { 0 };
        of_kind
            .min_by_key(|(_, visitor)| order(visitor))
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who comes: `k1` with the cookie of account 1, `a` from source a. One is served at a time,
    /// and `.` is the end of a turn. Answers who had a turn, in order, until the line is empty.
    fn served(limits: LineLimits, coming: &str) -> String {
        let (mut line, mut names, mut order) = (PasswordLine::new(limits), Vec::new(), Vec::new());
        let mut end_turn = |line: &mut PasswordLine<String>, names: &[(Number, &str)]| {
            let number = line.served.first().map(|visitor| visitor.number)?;
            order.push(
                names
                    .iter()
                    .find(|(one, _)| *one == number)
                    .map(|(_, name)| (*name).to_owned())?,
            );
            line.leave(number);
            Some(())
        };
        for name in coming.split(' ') {
            if name == "." {
                end_turn(&mut line, &names).unwrap();
                continue;
            }
            let account = name
                .strip_prefix('k')
                .map(|digit| [digit.parse().unwrap(); 32]);
            names.push((line.enter(account, name.to_owned()), name));
        }
        while end_turn(&mut line, &names).is_some() {}
        assert!(line.waiting.is_empty() && line.served.is_empty());
        order.join(" ")
    }

    #[test]
    fn sources_have_turns_one_after_the_other_and_known_accounts_every_second_one() {
        let limits = LineLimits {
            at_once: 1,
            strangers: 4,
            accounts: 2,
        };
        for (coming, expected, why) in [
            ("a b c", "a b c", "each in the order in which they came"),
            ("a a a b c", "a a b c a", "by source, in turn"),
            (
                "a a a a . b . . c",
                "a a a b a c",
                "who comes later waits for one turn of each source",
            ),
            ("a b c d e f", "a b c d e", "the line is full"),
            (
                "a a a a a b",
                "a a b a a",
                "the longest gives up its latest",
            ),
            ("a a a a a a", "a a a a a", "to itself it gives up nothing"),
            (
                "x a b a b a",
                "x a b a b",
                "nobody gives way to who would have as many",
            ),
            (
                "a b k1 c k2",
                "a k1 b k2 c",
                "known accounts have every second turn",
            ),
            ("k1 k2 a b", "k1 a k2 b", "and no more than that"),
            (
                "a b c d e f k1",
                "a k1 b c d e",
                "strangers cannot fill their line",
            ),
            (
                "a k1 k1 k1 b",
                "a k1 k1 b k1",
                "one at a time of each account: the others wait by source",
            ),
            ("k1 k1 k2 a", "k1 k1 k2 a", "also while it has its turn"),
            (
                "a k1 k2 k3 b",
                "a k1 k3 k2 b",
                "beyond the places of accounts by source",
            ),
        ] {
            assert_eq!(served(limits, coming), expected, "{coming}: {why}");
        }
    }

    #[test]
    fn whoever_is_turned_away_or_leaves_neither_waits_nor_has_a_turn() {
        let mut line = PasswordLine::new(LineLimits {
            at_once: 2,
            strangers: 1,
            accounts: 1,
        });
        let numbers = ["a", "b", "c", "d"].map(|source| line.enter(None, source));
        assert_eq!(
            numbers.map(|number| line.has_turn(number)),
            [true, true, false, false]
        );
        assert_eq!(
            numbers.map(|number| line.is_waiting(number)),
            [false, false, true, false]
        );
        assert_eq!(line.room(), 0);
        line.leave(numbers[2]);
        assert_eq!((line.is_waiting(numbers[2]), line.room()), (false, 1));
        let known = line.enter(Some([1; 32]), "e");
        assert!(line.is_waiting(known));
        line.leave(numbers[0]);
        assert!(line.has_turn(known) && line.has_turn(numbers[1]));
    }
}
