//! How figures are shown: what, the value, the goal, and whether it was met.

use std::time::Duration;

use crate::Outcome;

pub(crate) fn heading(text: &str) {
    println!("{text}");
}

/// A figure that has a goal.
pub(crate) fn row(what: &str, value: &str, goal: &str, met: bool) {
    println!("  {what:<44} {value:>22}   {goal:<12} {}", if met { "met" } else { "missed" });
}

/// A figure to know.
pub(crate) fn note(what: &str, value: &str) {
    println!("  {what:<44} {value:>22}");
}

/// A part of the values in their order, such as the median at 50.
pub(crate) fn part(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    part(values, 50)
}

pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / 1024.0 / 1024.0
}

/// The processor time of this process so far.
pub(crate) fn cpu() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// The memory of this process now, in bytes.
pub(crate) fn memory() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}
