package services

// kind is a server that people run services on, set up as its operators would.
type kind struct {
	name  string
	start func(*host)

	// crowded: a process works on several requests at once, so its death cuts off others than the one that caused it.
	crowded bool
	// serial: it works on one request at a time, and a slow one holds up all others.
	serial bool
	// alone: there is one process, so that nobody listens when it has died.
	alone bool
	// graceful: a reload lets requests at work end. Otherwise it is a restart that cuts them off.
	graceful bool
	// front is the status by which a server in front of the service says that the service broke off; empty without one.
	front string
	// hangsUp: a server in front that may close the connection instead, without an answer.
	hangsUp bool
	// late is the status by which a server in front says that the service took too long.
	late string
	// absent is the status by which a server in front says that the service is not there.
	absent string
	// killsLate: a server that kills the process of a request that takes too long.
	killsLate bool
	// bodyLimit: /limited takes bodies up to nginx's default of 1 MB.
	bodyLimit bool
	// dropsUnderscores: headers whose names have underscores do not reach the service.
	dropsUnderscores bool
}

var kinds = []kind{
	{name: "php-builtin", start: startPHP, crowded: true, serial: true, alone: true},
	{
		name: "php-fpm", start: startPHPFPM, graceful: true, front: "502", late: "504", absent: "502",
		bodyLimit: true, dropsUnderscores: true,
	},
	{name: "gunicorn", start: startGunicorn, graceful: true, killsLate: true},
	{name: "gunicorn-threads", start: startGunicornThreads, crowded: true, graceful: true},
	{name: "node", start: startNode, crowded: true, graceful: true},
	{name: "java", start: startJava, crowded: true, alone: true},
	{
		name: "nginx", start: startNginx, graceful: true, front: "502", late: "504", absent: "502",
		bodyLimit: true, dropsUnderscores: true,
	},
	{name: "apache", start: startApache, graceful: true, front: "502", late: "502", absent: "503", hangsUp: true},
}
