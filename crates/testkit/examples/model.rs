//! The scripted model for a person at the keyboard: start it, set the variables it prints, run a CLI by hand
//! and put directives such as `[[tool:ls]]` in the prompt. With `--bodies`, prints every request's body.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::time::Duration;

use anyhow::Result;
use multitap_testkit::model::ModelServer;

#[tokio::main]
async fn main() -> Result<()> {
    let bodies = std::env::args().any(|argument| argument == "--bodies");
    let server = ModelServer::start([])?;
    let url = server.url();
    println!("export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=dummy CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1");
    println!("export GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY=dummy");
    println!("export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=dummy");
    println!("# Codex: a model provider with base_url={url}/v1, wire_api=\"responses\"");
    let mut shown = 0;
    loop {
        server.until_requests(shown + 1, Duration::from_secs(600)).await.ok(); // a quiet person is no error
        for request in server.requests().iter().skip(shown) {
            shown += 1;
            let (role, model) = (request.role, request.model().unwrap_or("-"));
            println!("{} {} {role:?} {model} {:?}", request.method, request.path, request.last_user_text());
            if bodies {
                println!("{}", request.body);
            }
        }
    }
}
