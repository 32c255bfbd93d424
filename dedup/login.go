package dedup

// Login returns the user name and password that the configuration names, in its own fields or in the URL; empty ones
// mean none. It is what Credentials is for: read the configuration again, and return its Login.
func (c *Config) Login() (username, password string, err error) {
	s, err := redisOptions(*c)
	if err != nil {
		return "", "", err
	}
	return s.Username, s.Password, nil
}
