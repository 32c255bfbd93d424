package packaging

import (
	"regexp"
	"strings"
	"testing"
)

// instruction is one instruction of a Dockerfile, continuation lines joined.
type instruction struct {
	name string
	args string
}

func readDockerfile(t *testing.T) []instruction {
	t.Helper()
	joined := strings.ReplaceAll(readRepositoryFile(t, "Dockerfile"), "\\\n", " ")
	var instructions []instruction
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		instructions = append(instructions, instruction{name: name, args: strings.TrimSpace(args)})
	}
	return instructions
}

// finalStage returns the instructions from the last FROM on, that one first, by name.
func finalStage(t *testing.T) map[string][]string {
	t.Helper()
	stage := map[string][]string{}
	for _, instruction := range readDockerfile(t) {
		if instruction.name == "FROM" {
			clear(stage)
		}
		stage[instruction.name] = append(stage[instruction.name], instruction.args)
	}
	return stage
}

func TestImageHoldsOnlyTheBinary(t *testing.T) {
	stage := finalStage(t)
	if got := stage["FROM"]; len(got) != 1 || got[0] != "scratch" {
		t.Errorf("final stage is from %v, want scratch", got)
	}
	if len(stage["RUN"]) != 0 || len(stage["ADD"]) != 0 || len(stage["ENV"]) != 0 {
		t.Error("final stage runs or adds something")
	}
	wantInstruction(t, stage, "ENTRYPOINT", `["/rabbitonce"]`)
	if got := stage["CMD"]; len(got) != 0 {
		t.Errorf("CMD is %v: the command without an argument runs the proxy", got)
	}
	if check := strings.Join(stage["HEALTHCHECK"], ""); !strings.HasSuffix(check, `CMD ["/rabbitonce", "healthcheck"]`) {
		t.Errorf("HEALTHCHECK is %q", check)
	}
	copied := strings.Join(stage["COPY"], "\n")
	for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/rabbitonce"} {
		if !strings.Contains(copied+"\n", " "+path+"\n") {
			t.Errorf("nothing is copied to %s", path)
		}
	}
}

func TestImageRunsAsTheChartsUser(t *testing.T) {
	user := strings.Join(finalStage(t)["USER"], "")
	if !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Fatalf("USER is %q, want two numbers that are not root's", user)
	}
	context := sidecarOf(t, renderDeployment(t)).SecurityContext
	if chart := itoa(context.RunAsUser) + ":" + itoa(context.RunAsGroup); chart != user {
		t.Errorf("USER is %s, the chart runs the image as %s", user, chart)
	}
}

func TestImageExposesTheHealthPort(t *testing.T) {
	_, port, _ := strings.Cut(documentedSettings(t)["HEALTH_ADDR"], ":")
	wantInstruction(t, finalStage(t), "EXPOSE", port)
}

func wantInstruction(t *testing.T, stage map[string][]string, name, args string) {
	t.Helper()
	if got := stage[name]; len(got) != 1 || got[0] != args {
		t.Errorf("%s is %q, want %q", name, got, args)
	}
}
