//! The registration document: what operators write, read into typed objects with every mistake named.

pub mod defaults;
