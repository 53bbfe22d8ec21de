# expect: passed
package corpus.jwt_decode

deny contains "no subject" if {
	[_, payload, _] := io.jwt.decode("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")
	not payload.sub
}
