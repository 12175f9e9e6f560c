//! Whether time tells two things apart.

use std::time::{Duration, Instant};

/// Beyond it, two things differ: chance alone makes one measurement in a hundred thousand do so.
const TOLD_APART: f64 = 4.5;
/// What else runs on the machine spoils one measurement, and not all of them. What the product does
/// is in each.
const TRIES: usize = 3;

/// Fails where each measurement tells the two things apart.
pub fn assert_not_told_apart(what: &str, rounds: usize, mut trial: impl FnMut(usize)) {
    let mut told = Vec::new();
    while told.len() < TRIES {
        let t = welch(rounds, &mut trial);
        if t.abs() < TOLD_APART {
            return;
        }
        told.push(t);
    }
    panic!("{what}: time tells them apart, t is {told:?}");
}

/// Does what is to be done within a time, once more where it was not. Fails where it never was.
pub fn within<T>(limit: Duration, what: &str, mut work: impl FnMut() -> T) -> T {
    let mut taken = Vec::new();
    while taken.len() < TRIES {
        let begun = Instant::now();
        let done = work();
        let took = begun.elapsed();
        if took < limit {
            return done;
        }
        taken.push(took);
    }
    panic!("{what}: {taken:?}, each longer than {limit:?}");
}

/// Welch's t of how long two things take that are tried by turns; `trial` does the one of that
/// number.
pub fn welch(rounds: usize, mut trial: impl FnMut(usize)) -> f64 {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // Neither is always the first of the two.
        for which in [round % 2, 1 - round % 2] {
            let begun = Instant::now();
            trial(which);
            times[which].push(begun.elapsed().as_secs_f64());
        }
    }
    let moments = |times: &[f64]| {
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        (
            mean,
            times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0) / count,
        )
    };
    let [(one, of_one), (other, of_other)] = [moments(&times[0]), moments(&times[1])];
    (one - other) / (of_one + of_other).sqrt()
}
