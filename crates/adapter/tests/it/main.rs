//! What the adapter makes of real recordings, of the older shapes, and of anything at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod claude_recordings;
mod codex_recordings;
mod recording;
mod shown;
