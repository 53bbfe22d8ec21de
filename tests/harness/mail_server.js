// A mail server for tests: takes everything, and prints each message as a line of JSON.
// node mail_server.js PATH_OF_SMTP_SERVER USER PASSWORD
const { SMTPServer } = require(process.argv[2]);
const [user, password] = process.argv.slice(3);

const server = new SMTPServer({
  disabledCommands: ["STARTTLS"],
  allowInsecureAuth: true,
  onAuth(auth, session, done) {
    const fits = auth.username === user && auth.password === password;
    fits ? done(null, { user }) : done(new Error("wrong user or password"));
  },
  onRcptTo(address, session, done) {
    address.address.startsWith("nobody@") ? done(new Error("no such mailbox")) : done();
  },
  onData(stream, session, done) {
    const pieces = [];
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("end", () => {
      const to = session.envelope.rcptTo.map((one) => one.address);
      const from = session.envelope.mailFrom.address;
      console.log(JSON.stringify({ from, to, user: session.user, message: Buffer.concat(pieces).toString() }));
      done();
    });
  },
});
server.on("error", (error) => console.error(String(error)));
server.listen(0, "127.0.0.1", () => console.log(`mail server listens on ${server.server.address().port}`));
