#!/usr/bin/env bash
# Guess: a random number from a library that asks the kernel takes a microsecond, the first of a process, too.
# So it is: the first one takes 20 to 30 ms of the processor. aws-lc gathers the jitter of the clock for its seed, beside the kernel's
# randomness, in each process anew; every short-lived program that signs, seals or speaks TLS by it pays that. Built with
# AWS_LC_SYS_NO_JITTER_ENTROPY=1, an option of the build script, the first one takes well below a millisecond.
# Versions: aws-lc-rs 1.19.0 (crates.io), aws-lc-sys 0.47.0, Rust 1.95.0, x86-64. Seen, microseconds of the first number and the second:
# as usual 29017 1
# without jitter 31 0
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "first"
version = "0.0.0"
edition = "2021"
[dependencies]
aws-lc-rs = { version = "=1.19.0", default-features = false, features = ["aws-lc-sys", "alloc"] }
aws-lc-sys = "=0.47.0"
TOML
cat >src/main.rs <<'RUST'
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use std::time::Instant;

fn main() {
    let mut bytes = [0; 16];
    for _ in 0..2 {
        let begun = Instant::now();
        SystemRandom::new().fill(&mut bytes).unwrap();
        print!("{} ", begun.elapsed().as_micros());
    }
    println!();
}
RUST
# The quickest of ten, in microseconds: the first number of a process, and the second.
quickest() { for _ in 1 2 3 4 5 6 7 8 9 10; do "$1"; done | sort -n | head -n 1; }
env -u AWS_LC_SYS_NO_JITTER_ENTROPY cargo build --quiet --release --target-dir with
AWS_LC_SYS_NO_JITTER_ENTROPY=1 cargo build --quiet --release --target-dir without
with=$(quickest with/release/first)
without=$(quickest without/release/first)
printf 'as usual %s\nwithout jitter %s\n' "$with" "$without"
[ "${with%% *}" -gt 3000 ] && [ "${without%% *}" -lt 1000 ]
