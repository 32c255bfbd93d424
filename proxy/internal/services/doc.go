// Package services holds the tests with the servers that people run their services on: PHP's own and php-fpm, gunicorn,
// Node, the JDK's, and nginx and Apache in front of one. Each is installed by .ci/install, started by the test in a
// folder of its own, and serves the same small program in its language (testdata).
//
// # What the program does
//
// It answers a POST with 200, and obeys the message's headers:
//
//	do: die-before   its process kills itself with SIGKILL before the work, at the first attempt
//	do: die-after    the same after the work, before the answer
//	sleep: N         the work takes N milliseconds
//	answer: N        the answer has N bytes
//
// # What is judged
//
// The journal that the program writes: a line when a request was read whole, with all its headers, and a line when the
// work was done. So executions are counted on the service's side, not by what the client of HTTP believes. Each test
// says for each message how many requests and executions there must be; the attempts must be numbered from 1 without a
// gap, and all but the first be flagged. Then the program under test ends in good order, its queue must be empty, and the dead
// letters must be those that were expected.
//
// # Processes
//
// Servers stay in the foreground, in a process group that ends with the test's process. One that dies is started again,
// as a container would be.
package services
