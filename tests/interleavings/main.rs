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
mod statements;
mod steps;
mod world;

use std::collections::{HashSet, VecDeque};
use std::thread;

use judges::{Judges, OF_THE_CODE};
use world::{GrantScope, Promise, Step, World, with_code, with_tokens};

/// How each run begins.
fn beginnings() -> [World; 5] {
    [
        with_code(GrantScope::Offline),
        with_code(GrantScope::Online),
        with_tokens(GrantScope::Online, 0),
        with_tokens(GrantScope::Offline, 0),
        with_tokens(GrantScope::Offline, 1),
    ]
}

/// A promise that was broken, and what led there.
#[derive(Debug)]
struct Broken {
    promise: Promise,
    trace: Vec<Step>,
}

/// Goes through every world that follows from one, the nearest first. Answers how many there are.
fn explore(beginning: World, judges: &Judges) -> Result<usize, Broken> {
    let mut seen = HashSet::from([beginning]);
    let mut reached: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut next = VecDeque::from([(beginning, 0)]);
    while let Some((world, number)) = next.pop_front() {
        for step in steps::steps(&world) {
            match steps::take(&world, step, judges) {
                Ok(world) if seen.insert(world) => {
                    next.push_back((world, reached.len()));
                    reached.push((number, Some(step)));
                }
                Ok(_) => {}
                Err(promise) => {
                    let mut trace = vec![step];
                    let mut at = number;
                    while let (before, Some(step)) = reached[at] {
                        trace.push(step);
                        at = before;
                    }
                    trace.reverse();
                    return Err(Broken { promise, trace });
                }
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_promise_breaks_in_any_order_with_a_crash_at_any_step() {
    let numbers: Vec<usize> = thread::scope(|scope| {
        let runs = beginnings().map(|world| scope.spawn(move || explore(world, &OF_THE_CODE)));
        let mut numbers = Vec::new();
        for run in runs {
            match run.join().unwrap() {
                Ok(number) => numbers.push(number),
                Err(broken) => panic!("{broken:#?}"),
            }
        }
        numbers
    });
    println!("{numbers:?} worlds");
}

#[test]
fn a_judgement_that_is_bent_breaks_its_promise() {
    for bent in bent::every_one() {
        let Err(broken) = explore(bent.beginning, &bent.judges) else {
            panic!("nothing breaks: {}", bent.what);
        };
        println!("{}: {broken:#?}", bent.what);
        assert_eq!(broken.promise, bent.breaks, "{}", bent.what);
    }
}
