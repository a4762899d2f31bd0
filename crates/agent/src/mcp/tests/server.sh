# An MCP server for tests. $1 says how it misbehaves; what it hears goes into the file that HEARD names.
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { printf '{"jsonrpc":"2.0","method":"%s","params":%s}\n' "$1" "$2"; }
text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
tool() { printf '{"name":"%s","description":"%s","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"message":{"type":"string"}}}%s}' "$1" "$2" "$3"; }

case $1 in
  dead) echo 'no key is set' >&2; exit 3 ;;
  hangs) echo 'still thinking' >&2; while read -r line; do :; done; exit 0 ;;
  noise) echo 'Welcome to the server!'; echo; echo 'listening' ;;
  noise_only) echo 'Welcome!'; while read -r line; do :; done; exit 0 ;;
esac
more=
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$HEARD"
  # The id is the last of the line, since parameters may hold one of their own.
  id=${line##*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      if [ "$1" = modern ]; then
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id"
      else
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"test","version":"1"}}'
      fi ;;
    *'"method":"server/discover"'*)
      answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
    *'"method":"tools/list"'*)
      if [ "$1" = no_list ]; then echo 'lost the list' >&2; exit 4; fi
      tools=$(tool echo 'Says it again' ',"annotations":{"readOnlyHint":true}'),$(tool fail Fails),$(tool slow 'Takes its time'),$(tool die Dies),$(tool more 'Has one more'),$(tool where 'Says where it runs')
      answer '{"tools":['"$tools$more"'],"resultType":"complete","ttlMs":0,"cacheScope":"private"}' ;;
    *'"method":"tools/call"'*'"name":"fail"'*)
      answer '{"content":[{"type":"text","text":"failed on purpose"}],"isError":true}' ;;
    *'"method":"tools/call"'*'"name":"slow"'*)
      token=${line#*\"progressToken\":}
      token=${token%%[,\}]*}
      say notifications/progress '{"progressToken":'"$token"',"progress":1,"total":4,"message":"a quarter"}'
      say notifications/message '{"level":"debug","data":"too small to see"}'
      say notifications/message '{"level":"info","data":"a word on the way"}' ;;
    *'"method":"tools/call"'*'"name":"die"'*) echo 'out of memory' >&2; exit 9 ;;
    *'"method":"tools/call"'*'"name":"more"'*)
      more=,$(tool late 'Was not there before')
      say notifications/tools/list_changed '{}'
      text 'one more' ;;
    *'"method":"tools/call"'*'"name":"where"'*) text "$PWD $GIVEN $SECRET" ;;
    *'"method":"tools/call"'*)
      message=${line#*\"message\":\"}
      message=${message%%\"*}
      text "echo: $message" ;;
    *'"method":"ping"'*) answer '{}' ;;
  esac
done
