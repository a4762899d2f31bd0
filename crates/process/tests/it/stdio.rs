//! What goes through the pipes.

use std::time::{Duration, Instant};

use multitap_process::{Line, StdinClosed};

use crate::scene::{LONG, Scene, both, impatient, line, rest, supervisor, within};

#[tokio::test]
async fn lines_go_in_and_come_out_in_order() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("cat", &keeper).await;
        for number in 0..500 {
            let text = format!("{number} 漢字 {}", "x".repeat(number));
            child.stdin.write(text.clone(), LONG).await.unwrap();
            assert_eq!(line(&mut child).await, text);
        }
        for number in 0..50 {
            child.stdin.write(number.to_string(), LONG).await.unwrap();
        }
        child.stdin.close();
        let (lines, exit) = rest(&mut child).await;
        assert_eq!(lines, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(exit.success());
    }
}

#[tokio::test]
async fn the_tail_of_stderr_comes_with_the_end() {
    let scene = Scene::new();
    for keeper in both() {
        let script = r#"i=0; while [ $i -lt 3000 ]; do echo "noise $i" >&2; i=$((i+1)); done
            printf '\033[31merror\033[0m: \377 bad\r\n' >&2; echo '{"not":"parsed"}' >&2; exit 1"#;
        let (lines, exit) = rest(&mut scene.sh(script, &keeper).await).await;
        assert!(lines.is_empty());
        assert!(exit.stderr_tail.ends_with("noise 2999\nerror: \u{fffd} bad\n{\"not\":\"parsed\"}"), "{exit:?}");
        assert!(exit.stderr_tail.starts_with("noise ") && exit.stderr_tail.len() <= 8 * 1024);
    }
}

#[tokio::test]
async fn a_line_beyond_the_cap_is_skipped_and_the_next_one_is_whole() {
    let scene = Scene::new();
    let script = r"head -c 70000000 /dev/zero | tr '\0' x; printf '\nnext\n'";
    let mut child = scene.sh(script, &supervisor()).await;
    match within("the long line", child.stdout.next()).await.unwrap() {
        Some(Line::TooLong { head, bytes }) => assert_eq!((head.len(), bytes), (4096, 70_000_000)),
        other => panic!("{other:?}"),
    }
    let (lines, exit) = rest(&mut child).await;
    assert_eq!(lines, ["next"]);
    assert!(exit.success());
}

#[tokio::test]
async fn a_child_that_does_not_read_is_told_as_such_and_in_time() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("exec sleep 300", &keeper).await;
        let mut refused = None;
        for _ in 0..200 {
            let begun = Instant::now();
            let written = child.stdin.write("x".repeat(64 * 1024), Duration::from_millis(100)).await;
            assert!(begun.elapsed() < LONG);
            if let Err(error) = written {
                refused = Some(error);
                break;
            }
        }
        assert_eq!(refused, Some(StdinClosed::NotReading));
        // The end of input cannot get through; it is stopped all the same.
        let exit = within("stop", child.stop(impatient())).await;
        assert!(exit.signal.is_some());
    }
}

#[tokio::test]
async fn a_closed_input_shows_on_the_next_write() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("exec 0<&-; echo closed; exec sleep 300", &keeper).await;
        assert_eq!(line(&mut child).await, "closed");
        child.stdin.write("lost".into(), LONG).await.unwrap();
        let refused = within("a refusal", async {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if let Err(error) = child.stdin.write("more".into(), LONG).await {
                    return error;
                }
            }
        });
        assert_eq!(refused.await, StdinClosed::Closed);
        within("stop", child.stop(impatient())).await;
        assert_eq!(child.stdin.write("again".into(), LONG).await, Err(StdinClosed::Closed));
    }
}

#[tokio::test]
async fn bytes_come_as_they_are_written_without_a_line_to_wait_for() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("printf one; read line; printf two; exit 3", &keeper).await;
        let mut bytes = [0; 16];
        assert_eq!(within("the first", child.read(&mut bytes)).await.unwrap(), 3);
        assert_eq!(&bytes[..3], b"one");
        child.stdin.close();
        assert_eq!(within("the second", child.read(&mut bytes)).await.unwrap(), 3);
        assert_eq!(within("the end", child.read(&mut bytes)).await.unwrap(), 0);
        assert_eq!(within("its exit", child.wait()).await.code, Some(3));
    }
}

#[tokio::test]
async fn who_only_holds_the_pipe_does_not_keep_the_reader() {
    let scene = Scene::new();
    for (keeper, script) in both().into_iter().zip(["setsid sleep 300 & printf up", "sleep 300 & printf up"]) {
        let mut child = scene.sh(script, &keeper).await;
        let mut bytes = [0; 16];
        assert_eq!(within("the output", child.read(&mut bytes)).await.unwrap(), 2);
        assert_eq!(within("the end", child.read(&mut bytes)).await.unwrap(), 0);
        assert_eq!(within("its exit", child.wait()).await.code, Some(0));
    }
}
