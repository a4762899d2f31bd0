use multitap_event::ToolOutcome;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;

/// A web server on this machine that answers by path, until it is dropped.
struct Server {
    port: u16,
    _tasks: JoinSet<()>,
}

impl Server {
    /// `answers` are paths and whole answers; `PORT` in them is the server's own.
    async fn new(answers: &'static [(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                open.spawn(async move {
                    let mut request = vec![0; 4096];
                    let count = stream.read(&mut request).await.unwrap();
                    let request = String::from_utf8_lossy(&request[..count]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let found = answers.iter().find(|(known, _)| *known == path);
                    let (head, body) = match found.map(|(_, answer)| *answer) {
                        Some("HANG") => return std::future::pending().await,
                        Some("FLOOD") => ("HTTP/1.1 200 OK\ncontent-type: text/plain", "x".repeat(5 * 1024 * 1024)),
                        Some(answer) => {
                            let (head, body) = answer.split_once("\n\n").unwrap_or((answer, ""));
                            (head, body.replace("ECHO", &request))
                        }
                        None => ("HTTP/1.1 404 Not Found", String::new()),
                    };
                    let head = head.replace("PORT", &port.to_string()).replace('\n', "\r\n");
                    let answer = format!("{head}\r\nconnection: close\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).await.ok();
                });
            }
        });
        Self { port, _tasks: tasks }
    }

    /// Allows this server and no other address of this machine.
    fn screen(&self) -> Screen {
        Screen::public().allowing("127.0.0.1")
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn context() -> (ToolContext, mpsc::Receiver<Progress>) {
    let (progress, reported) = mpsc::channel(64);
    (ToolContext { progress, stop: CancellationToken::new() }, reported)
}

async fn fetch(url: &str, screen: &Screen) -> Outcome {
    Fetch::of(&[url]).run(screen, context().0).await
}

fn ready(arguments: serde_json::Value) -> Result<Fetch, BadCall> {
    prepare(serde_json::from_value(arguments).unwrap(), &Screen::public())
}

#[test]
fn addresses_are_found_in_a_prompt() {
    let found = ready(
        json!({ "prompt": "Compare (https://a.example/x?y=1), `http://b.example` and <https://a.example/x?y=1>." }),
    );
    assert_eq!(found.unwrap().urls, ["https://a.example/x?y=1", "http://b.example/"]);
    assert_eq!(ready(json!({ "url": "https://c.example" })).unwrap().urls, ["https://c.example/"]);
    assert!(ready(json!({ "prompt": "what is new?" })).unwrap_err().0.contains("no address was named"));
    assert!(ready(json!({ "url": "example.com" })).unwrap_err().0.contains("is not an address"));
    let many: Vec<String> = (0..20).map(|number| format!("https://a.example/{number}")).collect();
    assert!(ready(json!({ "urls": many })).unwrap_err().0.contains("too many"));
}

#[test]
fn a_prompt_of_many_addresses_is_refused_in_linear_time() {
    let prompt: String = (0..300_000).map(|at| format!("http://example.org/{at:06} ")).collect();
    assert!(ready(json!({ "prompt": prompt })).unwrap_err().0.contains("too many"));
}

#[test]
fn what_may_not_be_reached_is_refused_before_anybody_is_asked() {
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://0x7f000001/",
        "file:///etc/passwd",
        "http://user:pass@example.com/",
    ] {
        let refused = ready(json!({ "url": url })).unwrap_err();
        assert!(refused.0.starts_with("cannot fetch "), "{url}: {refused}");
    }
}

#[tokio::test]
async fn a_page_comes_as_text() {
    let server = Server::new(&[
        ("/page", "HTTP/1.1 200 OK\ncontent-type: text/html; charset=iso-8859-1\n\n<h1>Hi</h1><script>x</script><p>ok"),
        ("/json", "HTTP/1.1 200 OK\ncontent-type: application/json\n\n{\"a\": 1}"),
        ("/image", "HTTP/1.1 200 OK\ncontent-type: image/png\n\nxxxx"),
        ("/echo", "HTTP/1.1 200 OK\ncontent-type: text/plain\n\nECHO"),
    ])
    .await;
    let outcome = fetch(&server.url("/page"), &server.screen()).await;
    assert_eq!(outcome.text, format!("{}:\n\n# Hi\n\nok", server.url("/page")));
    let outcome = fetch(&server.url("/json"), &server.screen()).await;
    assert!(outcome.text.ends_with("{\"a\": 1}"), "{}", outcome.text);
    let outcome = fetch(&server.url("/image"), &server.screen()).await;
    assert!(outcome.outcome == ToolOutcome::Failed && outcome.text.contains("not text, but image/png"), "{outcome:?}");
    let outcome = fetch(&server.url("/gone"), &server.screen()).await;
    assert!(outcome.text.contains("the server says 404"), "{outcome:?}");
    let outcome = fetch(&server.url("/echo"), &server.screen()).await;
    assert!(outcome.text.contains("user-agent: multitap/"), "{}", outcome.text);
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_an_address_may_not() {
    let server = Server::new(&[
        ("/here", "HTTP/1.1 302 Found\nlocation: /there"),
        ("/there", "HTTP/1.1 200 OK\ncontent-type: text/plain\n\narrived"),
        ("/loopback", "HTTP/1.1 302 Found\nlocation: http://127.0.0.2:PORT/there"),
        ("/name", "HTTP/1.1 302 Found\nlocation: http://localhost:PORT/there"),
        ("/metadata", "HTTP/1.1 301 Moved\nlocation: http://169.254.169.254/latest"),
        ("/six", "HTTP/1.1 307 Moved\nlocation: http://[::1]:PORT/there"),
        ("/private", "HTTP/1.1 308 Moved\nlocation: http://10.0.0.1/"),
        ("/file", "HTTP/1.1 302 Found\nlocation: file:///etc/passwd"),
        ("/round", "HTTP/1.1 302 Found\nlocation: /round"),
    ])
    .await;
    let screen = server.screen();
    let outcome = fetch(&server.url("/here"), &screen).await;
    assert!(outcome.text.ends_with("/there):\n\narrived"), "{}", outcome.text);
    for (path, words) in [
        ("/loopback", "127.0.0.2 is this machine"),
        ("/name", "localhost is this machine"),
        ("/metadata", "169.254.169.254 is a link-local address"),
        ("/six", "[::1] is this machine"),
        ("/private", "10.0.0.1 is a private address"),
        ("/file", "only http and https"),
        ("/round", "redirects more than 5 times"),
    ] {
        let outcome = fetch(&server.url(path), &screen).await;
        assert_eq!(outcome.outcome, ToolOutcome::Failed, "{path}");
        assert!(outcome.text.contains(words), "{path}: {}", outcome.text);
    }
    // Also where both may be reached: whoever was asked was asked about the first.
    let open = Screen::allowing_private(true);
    let outcome = fetch(&server.url("/name"), &open).await;
    assert!(outcome.text.contains("it redirects to another host"), "{}", outcome.text);
    let same = |one: &str, other: &str| site(&Url::parse(one).unwrap()) == site(&Url::parse(other).unwrap());
    assert!(
        same("http://example.com", "https://www.example.com/x") && !same("http://example.com", "http://example.org")
    );
}

#[tokio::test]
async fn a_name_for_this_machine_is_not_connected_to() {
    let server = Server::new(&[("/", "HTTP/1.1 200 OK\ncontent-type: text/plain\n\nsecret")]).await;
    let url = format!("http://localhost:{}/", server.port);
    let outcome = fetch(&url, &Screen::public()).await;
    assert_eq!(outcome.text, format!("{url} could not be read: localhost is this machine, which is not allowed"));
    let open = Screen::allowing_private(true);
    assert!(fetch(&url, &open).await.text.ends_with("secret"));
}

#[tokio::test]
async fn a_flood_is_cut_and_a_silent_server_can_be_left() {
    let server = Server::new(&[("/flood", "FLOOD"), ("/hang", "HANG")]).await;
    let outcome = fetch(&server.url("/flood"), &server.screen()).await;
    assert!(outcome.text.len() < MOST_TEXT + 200 && outcome.text.ends_with("[… the rest is left out …]"));
    let (context, _told) = context();
    let stop = context.stop.clone();
    let (url, screen) = (server.url("/hang"), server.screen());
    let (outcome, ()) = tokio::join!(Fetch::of(&[&url]).run(&screen, context), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.cancel();
    });
    assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
}
