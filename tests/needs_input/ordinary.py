"""A hundred ordinary commands that never wait for input."""

COMMANDS = """
true
echo hello
sleep 0.2
sleep 1.5
sleep 30
for i in 1 2 3; do echo $i; sleep 0.3; done
sleep 0.5 | cat
sleep 0.5; echo done
(sleep 0.3; echo a) | (sleep 0.5; cat) | sort
seq 100000 | sort -rn | head -n 3
seq 200000 | awk '{ s += $1 } END { print s }'
seq 100000 | xargs -n 1000 echo | wc
find / -xdev -maxdepth 4 -name '*.conf' 2>/dev/null | wc -l
grep -r include /usr/include 2>/dev/null | wc -l
du -s /usr/share 2>/dev/null
ls -lR /usr/share/doc | tail -n 1
cat file | tr a-z A-Z
tail -n 2 long
tail -f file
tail -F missing
head -c 1000000 /dev/urandom | sha256sum
head -c 3000000 /dev/urandom | gzip | wc -c
head -c 2000000 /dev/urandom | xz -1 | wc -c
head -c 2000000 /dev/urandom | bzip2 | wc -c
head -c 3000000 /dev/zero | zstd | wc -c
tar cf - /usr/include 2>/dev/null | wc -c
tar czf $$.tgz repository && tar tzf $$.tgz >/dev/null; rm $$.tgz
dd if=/dev/zero of=/dev/null bs=1M count=2000
dd if=/dev/zero of=$$.dd bs=1M count=20 conv=fsync; rm $$.dd
cp -r repository $$.copy && rm -rf $$.copy
rsync -a repository/ $$.rsync; rm -rf $$.rsync
diff -r repository repository
cksum long
od -c long | tail -n 1
split -l 100 long $$.part; rm $$.part*
sort -R long | uniq | wc -l
sed 's/1/2/g' long | md5sum
base64 long | base64 -d | wc -c
while :; do sleep 0.1; done
while :; do :; done
until false; do echo x; sleep 0.05; done
yes | head -n 100000 | wc -l
yes >/dev/null
timeout 1 sleep 5
timeout 1 yes >/dev/null
nice -n 5 seq 100000 | tail -n 1
nohup sleep 0.5
setsid sleep 0.5
sleep 1 & wait
sleep 1 & sleep 0.3; kill $!; wait
(trap 'exit 0' TERM; sleep 0.5; kill $$)
mkfifo $$.f; (sleep 0.5; echo x >$$.f) & cat $$.f; rm $$.f
cat fifo
bash -c 'sleep 0.5; echo ${RANDOM}'
bash -ic 'sleep 0.5'
bash -c 'coproc sleep 0.7; wait'
bash -c 'for i in {1..20}; do (sleep 0.2; echo $i) & done; wait'
bash -c 'exec 3<>/dev/tcp/127.0.0.1/$WEB; sleep 1'
gcc -O2 -o $$.out main.c && ./$$.out; rm $$.out
gcc -O2 -S -o /dev/null big.c
gcc -E big.c | wc -l
make -f Build clean all
make -f Build -j 4 many
make -f Build test
cargo build --offline --manifest-path crate/Cargo.toml --target-dir $$.target; rm -rf $$.target
cargo test --offline --manifest-path crate/Cargo.toml --target-dir $$.target; rm -rf $$.target
cargo metadata --offline --format-version 1 --manifest-path crate/Cargo.toml
rustc --edition 2024 -o $$.out main.rs && ./$$.out; rm $$.out
javac -d $$.classes Sleeper.java; rm -rf $$.classes
java Sleeper.java
cmake -S . -B $$.build; rm -rf $$.build
python3 -c 'import time; time.sleep(1)'
python3 -c 'sum(i * i for i in range(10**7))'
python3 -m compileall -q -f test_sums.py
python3 -m unittest test_sums
python3 -m http.server -b 127.0.0.1 0
python3 -m json.tool numbers.json
python3 -c 'import subprocess; subprocess.run(["sleep", "1"])'
python3 -c 'import multiprocessing as m; m.Pool(3).map(abs, range(10**6))'
python3 -c 'import asyncio; asyncio.run(asyncio.sleep(1))'
python3 -c 'import threading, time; [threading.Thread(target=time.sleep, args=(1,)).start() for _ in range(50)]'
python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); s.settimeout(1); s.accept()'
python3 -c 'import tqdm' || python3 -c 'import time; [(print(end=".", flush=True), time.sleep(0.12)) for _ in range(12)]'
node -e 'setTimeout(() => console.log("done"), 800)'
node -e 'require("http").createServer().listen(0, "127.0.0.1")'
node -e 'require("net").createServer().listen(0, "127.0.0.1"); process.stdin.resume()'
node -e 'require("child_process").execSync("sleep 1")'
node -e 'new (require("worker_threads").Worker)("setTimeout(() => {}, 1000)", { eval: true })'
node --test sums.test.js
npm --version
perl -e 'select undef, undef, undef, 0.8'
perl -e '$x += $_ for 1..2e7; print $x'
ruby -e 'sleep 1'
git -C repository --no-pager log --oneline
git -C repository status
git -C repository gc --quiet
git clone --quiet repository $$.clone; rm -rf $$.clone
git -C repository --no-pager grep -n line
curl -s -o /dev/null http://127.0.0.1:$WEB/long
curl -s --limit-rate 2k -o /dev/null http://127.0.0.1:$WEB/long
curl -s http://127.0.0.1:$SILENT/
wget -q -O /dev/null http://127.0.0.1:$WEB/long
openssl genrsa 3072 2>/dev/null | wc -l
sqlite3 $$.db 'create table t (n); insert into t values (1); select * from t'; rm $$.db
jq length numbers.json
strace -c -o /dev/null sleep 0.5
watch -n 1 date
top -b -n 2 -d 0.5
vmstat 1 2
""".strip().splitlines()
