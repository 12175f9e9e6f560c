//! Every order in which three requests can happen, with a crash at every step of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic here is a failed test"
)]

mod bent;
mod judges;
mod sample;
mod statements;
mod steps;
mod world;

use std::collections::{HashSet, VecDeque};
use std::{fmt, thread};

use judges::{Court, Judges, OF_THE_CODE};
use world::{GrantScope, Promise, Step, World, with_code, with_tokens, with_tokens_of_a_thief};

/// How each run begins.
fn beginnings() -> [World; 6] {
    [
        with_code(GrantScope::Offline),
        with_code(GrantScope::Online),
        with_tokens(GrantScope::Online, 0),
        with_tokens(GrantScope::Offline, 0),
        with_tokens(GrantScope::Offline, 1),
        with_tokens_of_a_thief(),
    ]
}

/// A promise that was broken, and what led there.
struct Broken {
    promise: Promise,
    trace: Vec<Step>,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "  broken: {:?}", self.promise)?;
        for step in &self.trace {
            writeln!(formatter, "  {step:?}")?;
        }
        Ok(())
    }
}

/// Goes through every world that follows from one, the nearest first, until a promise is broken, or
/// until this one is. Answers how many there are.
fn explore(beginning: World, judges: &Judges, only: Option<Promise>) -> Result<usize, Broken> {
    let court = Court::of(judges);
    let mut seen = HashSet::from([beginning]);
    let mut reached: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut next = VecDeque::from([(beginning, 0)]);
    while let Some((world, number)) = next.pop_front() {
        for step in steps::steps(&world) {
            let outcome = steps::take(&world, step, &court).and_then(|world| {
                if !seen.insert(world) {
                    return Ok(());
                }
                next.push_back((world, reached.len()));
                reached.push((number, Some(step)));
                steps::ask(&world, &court)
            });
            match outcome {
                Err(promise) if only.is_none_or(|only| only == promise) => {
                    let mut trace = vec![step];
                    let mut at = number;
                    while let (before, Some(step)) = reached[at] {
                        trace.push(step);
                        at = before;
                    }
                    trace.reverse();
                    return Err(Broken { promise, trace });
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_promise_breaks_in_any_order_with_a_crash_at_any_step() {
    let numbers: Vec<usize> = thread::scope(|scope| {
        let runs =
            beginnings().map(|world| scope.spawn(move || explore(world, &OF_THE_CODE, None)));
        let mut numbers = Vec::new();
        for run in runs {
            match run.join().unwrap() {
                Ok(number) => numbers.push(number),
                Err(broken) => panic!("{broken}"),
            }
        }
        numbers
    });
    println!("{numbers:?} worlds");
}

#[test]
fn a_judgement_that_is_bent_breaks_its_promise() {
    for bent in bent::every_one() {
        match explore(bent.beginning, &bent.judges, Some(bent.breaks)) {
            Ok(number) => panic!("{}: nothing breaks in {number} worlds", bent.what),
            Err(broken) => println!("{}\n{broken}", bent.what),
        }
    }
}
