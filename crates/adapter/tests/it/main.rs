//! What the adapter makes of real recordings, of the older shapes, of anything at all, and of the real programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acp_recordings;
mod anything;
mod claude_encode;
mod claude_recordings;
mod codex_encode;
mod codex_older;
mod codex_recordings;
mod description;
mod forks;
mod gemini_anything;
mod gemini_recordings;
mod gemini_shapes;
mod history;
mod history_anything;
#[cfg(unix)]
mod interop_acp;
#[cfg(unix)]
mod interop_acp_agents;
#[cfg(unix)]
mod interop_claude;
#[cfg(unix)]
mod interop_codex;
#[cfg(unix)]
mod interop_gemini;
mod invariants;
mod older_shapes;
#[cfg(unix)]
mod pump;
mod recording;
#[cfg(unix)]
mod scene;
mod schema;
mod setting;
#[cfg(unix)]
mod settings;
mod shown;
#[cfg(unix)]
mod turns;
