//! Whether time tells two things apart.

use std::time::Instant;

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
