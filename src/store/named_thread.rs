//! Threads with a name, by which the system's tools and the metrics know them.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work)
}
