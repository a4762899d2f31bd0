//! Real programs, started, spoken with and ended. The programs are small shell scripts.
#![cfg(unix)]

#[cfg(test)]
#[cfg(target_os = "linux")]
mod end;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod killed;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod start;
#[cfg(test)]
mod stdio;
