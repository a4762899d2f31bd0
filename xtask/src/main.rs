//! Multitap's own chores.
fn main() {}
