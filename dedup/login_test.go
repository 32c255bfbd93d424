package dedup

import "testing"

func TestLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg            Config
		user, password string
	}{
		"none":         {Config{RedisURL: "redis://h:1"}, "", ""},
		"the URL's":    {Config{RedisURL: "redis://u:p%2Fw@h:1"}, "u", "p/w"},
		"fields win":   {Config{RedisURL: "redis://u:p@h:1", RedisUsername: "v", RedisPassword: "q/"}, "v", "q/"},
		"several":      {Config{RedisURL: "redis://u:p@h:1,i:2", RedisCluster: true}, "u", "p"},
		"of a socket":  {Config{RedisURL: "unix:///s", RedisPassword: "q"}, "", "q"},
		"of a primary": {Config{RedisURL: "redis://u:p@h:1", RedisSentinelMaster: "m", RedisSentinelPassword: "s"}, "u", "p"},
	} {
		user, password, err := tt.cfg.Login()
		if err != nil || user != tt.user || password != tt.password {
			t.Errorf("%s: %q %q %v, want %q %q", name, user, password, err, tt.user, tt.password)
		}
	}
}
