package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// panel is one chart: bars for programs side by side, or lines over steps.
type panel struct {
	title  string
	axis   string   // what the labels are; "" draws bars
	labels []string // along the axis
	lines  []line
	format func(float64) string
}

// line is a program's values, one for each label. A value that was not measured is NaN.
type line struct {
	program program
	values  []float64
}

// Sizes in the units of the drawing.
const (
	panelWidth, panelHeight = 280, 190
	panelColumns            = 3
	marginLeft, marginRight = 52, 14
	marginTop, marginBottom = 34, 40
	legendHeight            = 40
	barWidth                = 44
)

// drawAll is the whole drawing: bars of the standard scenario, then two charts for each scenario that grows.
func drawAll(all []outcome, scenarios []scenario) string {
	var panels []panel
	for _, sc := range scenarios {
		i := slices.IndexFunc(all, func(o outcome) bool { return o.Name == sc.name })
		if i < 0 {
			continue
		}
		switch {
		case sc.name == "standard":
			for _, m := range []measure{speed, cost, peak} {
				panels = append(panels, bars(m, all[i].Steps[0]))
			}
		case sc.axis != "":
			panels = append(panels, growth(sc, speed, all[i].Steps), growth(sc, cost, all[i].Steps), growth(sc, peak, all[i].Steps))
		case len(all[i].Steps) > 1: // tenths of a run
			steps := all[i].Steps[1:]
			tenths := scenario{name: sc.name, axis: "part of the run", programs: sc.programs}
			panels = append(panels, growth(tenths, speed, steps), growth(tenths, peak, steps))
		}
	}
	return draw(panels)
}

func bars(m measure, st stepOutcome) panel {
	p := panel{title: "standard: " + m.title(), format: m.format}
	for _, one := range st.Programs {
		p.labels = append(p.labels, string(one.Program))
		p.lines = append(p.lines, line{program: one.Program, values: []float64{valueOf(one.Figures, m)}})
	}
	return p
}

func growth(sc scenario, m measure, steps []stepOutcome) panel {
	p := panel{title: strings.TrimPrefix(sc.name, "growth-") + ": " + m.title(), axis: sc.axis, format: m.format}
	for _, st := range steps {
		p.labels = append(p.labels, st.Label)
	}
	for _, name := range sc.programs {
		l := line{program: name}
		for _, st := range steps {
			l.values = append(l.values, valueOf(st.by()[name], m))
		}
		p.lines = append(p.lines, l)
	}
	return p
}

func valueOf(f figures, m measure) float64 {
	if value, measured := f[m]; measured {
		return value
	}
	return math.NaN()
}

// style makes the drawing readable on light and on dark pages.
const style = `
  .paper { fill: #ffffff } text { fill: #24292f; font: 11px system-ui, sans-serif } .title { font-weight: 600 }
  .rule { stroke: #d0d7de } .baseline { fill: #8c959f; stroke: #8c959f } .floor { fill: #bf8700; stroke: #bf8700 } .rabbitonce { fill: #0969da; stroke: #0969da }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #e6edf3 }
    .rule { stroke: #30363d } .baseline { fill: #8b949e; stroke: #8b949e } .floor { fill: #d29922; stroke: #d29922 } .rabbitonce { fill: #58a6ff; stroke: #58a6ff }
  }
  text.label { stroke: none } polyline { fill: none !important; stroke-width: 2 }
`

// canvas collects the elements of a drawing.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format+"\n", args...) }

// text writes a label; anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, class, label string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="label %s">%s</text>`, x, y, anchor, class, escapeXML.Replace(label))
}

var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// draw lays panels out in rows.
func draw(panels []panel) string {
	rows := (len(panels) + panelColumns - 1) / panelColumns
	width, height := panelColumns*panelWidth, legendHeight+rows*panelHeight
	var c canvas
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`, width, height, width, height)
	c.add("<title>Benchmarks of rabbitonce</title><style>%s</style>", style)
	c.add(`<rect class="paper" width="%d" height="%d"/>`, width, height)
	x := float64(marginLeft)
	for _, name := range trio {
		c.add(`<rect class="%s" x="%.1f" y="14" width="12" height="12"/>`, name, x)
		c.text(x+18, 24, "start", "", string(name))
		x += 110
	}
	for i, p := range panels {
		c.add(`<g transform="translate(%d %d)">`, i%panelColumns*panelWidth, legendHeight+i/panelColumns*panelHeight)
		p.draw(&c)
		c.add("</g>")
	}
	c.add("</svg>")
	return c.String()
}

func (p panel) draw(c *canvas) {
	c.text(marginLeft, 18, "start", "title", p.title)
	top := p.top()
	for _, share := range []float64{0, 0.5, 1} {
		y := height(share)
		c.add(`<line class="rule" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, marginLeft, y, panelWidth-marginRight, y)
		c.text(marginLeft-6, y+4, "end", "", axisText(share*top))
	}
	every := p.stride()
	for i, label := range p.labels {
		if i%every == 0 {
			c.text(p.x(i), panelHeight-marginBottom+16, "middle", "", label)
		}
	}
	if p.axis == "" {
		p.drawBars(c, top)
		return
	}
	c.text((marginLeft+panelWidth-marginRight)/2, panelHeight-marginBottom+31, "middle", "", p.axis)
	p.drawLines(c, top)
}

func (p panel) drawBars(c *canvas, top float64) {
	for i, l := range p.lines {
		value := l.values[0]
		if math.IsNaN(value) {
			continue
		}
		y := height(value / top)
		c.add(`<rect class="%s" x="%.1f" y="%.1f" width="%d" height="%.1f"/>`, l.program, p.x(i)-barWidth/2, y, barWidth, height(0)-y)
		c.text(p.x(i), y-4, "middle", "", p.format(value))
	}
}

func (p panel) drawLines(c *canvas, top float64) {
	for _, l := range p.lines {
		var points []string
		for i, value := range l.values {
			if math.IsNaN(value) {
				continue
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", p.x(i), height(value/top)))
			c.add(`<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, l.program, p.x(i), height(value/top),
				escapeXML.Replace(fmt.Sprintf("%s, %s: %s", l.program, p.labels[i], p.format(value))))
		}
		c.add(`<polyline class="%s" points="%s"/>`, l.program, strings.Join(points, " "))
	}
}

// x is the middle of a label's place.
func (p panel) x(i int) float64 { return marginLeft + (float64(i)+0.5)*p.place() }

// place is how wide the place of a label is.
func (p panel) place() float64 {
	return float64(panelWidth-marginLeft-marginRight) / float64(len(p.labels))
}

// stride is which labels are written, every so many, so that they do not run into each other.
func (p panel) stride() int {
	const letter, gap = 6.3, 5 // of the font, about
	longest := 0
	for _, label := range p.labels {
		longest = max(longest, len([]rune(label)))
	}
	return int(math.Ceil((letter*float64(longest) + gap) / p.place()))
}

// height is where a share of the largest value lies.
func height(share float64) float64 {
	return marginTop + (1-share)*(panelHeight-marginTop-marginBottom)
}

// top is a round number that no value is above. Bars need room for their values on them.
func (p panel) top() float64 {
	largest := 0.0
	for _, l := range p.lines {
		for _, value := range l.values {
			if !math.IsNaN(value) {
				largest = max(largest, value)
			}
		}
	}
	if p.axis == "" {
		largest *= 1.1
	}
	if largest == 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(largest)))
	for _, factor := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if largest <= factor*unit {
			return factor * unit
		}
	}
	return 10 * unit
}

func axisText(value float64) string {
	if value >= 1000 || value == math.Trunc(value) {
		return thousands(value)
	}
	return fmt.Sprintf("%g", value)
}
