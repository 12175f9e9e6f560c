//! A mutex that stays usable when a thread panics while it holds it. What our mutexes guard is
//! whole between any two steps, so the next thread may go on with it.

use std::sync::{self, MutexGuard, PoisonError};

/// As that of the standard library, without its poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
